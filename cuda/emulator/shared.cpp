// Shared memory: NaN before every block, so that a value which no thread wrote shows.
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "cuda/emulator/block.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/settings.h"
#include "tensor/error.h"

namespace heed::emulated {

namespace {

struct Region {
  char* begin;
  size_t bytes;
};

// The __shared__ variables of all kernels: the program's sections .noinit*, read from its own file. (In the program
// itself, that is; kernels in shared libraries are not found.)
std::vector<Region> find_static_regions() {
  std::vector<Region> regions;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  ElfW(Ehdr) header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return regions;
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  file.seekg(static_cast<std::streamoff>(header.e_shoff));
  file.read(reinterpret_cast<char*>(sections.data()),
            static_cast<std::streamsize>(sections.size() * sizeof sections[0]));
  std::vector<char> names(sections.at(header.e_shstrndx).sh_size + 1);
  file.seekg(static_cast<std::streamoff>(sections[header.e_shstrndx].sh_offset));
  file.read(names.data(), static_cast<std::streamsize>(names.size() - 1));
  ElfW(Addr) base = 0;  // where the program was loaded
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<ElfW(Addr)*>(out) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &base);
  for (const auto& section : sections) {
    if (std::strncmp(&names.at(section.sh_name), ".noinit", 7) != 0) continue;
    regions.push_back({reinterpret_cast<char*>(base + section.sh_addr), section.sh_size});
  }
  return regions;
}

const std::vector<Region>& static_regions() {
  static const auto regions = find_static_regions();
  return regions;
}

// Bytes of 0xff are NaN in every float type. Plain stores that no sanitizer looks at: between the variables lie
// AddressSanitizer's own bytes, and to the race detector this is not an access.
__attribute__((no_sanitize_address)) void fill(Region region) {
  volatile char* byte = region.begin;
  volatile char* const end = byte + region.bytes;
  for (; byte < end && reinterpret_cast<uintptr_t>(byte) % 8 != 0; byte++) *byte = -1;
  for (; end - byte >= 8; byte += 8) *reinterpret_cast<volatile int64_t*>(byte) = -1;
  for (; byte < end; byte++) *byte = -1;
}

size_t dynamic_bytes;
std::vector<void*> dynamic_blocks;  // the last is the one in use

}  // namespace

void prepare_shared_memory(const Kernel& kernel) { dynamic_bytes = kernel.shared_bytes; }

void fill_shared_memory() {
  for (Region region : static_regions()) {
    fill(region);
    if (settings().unordered) races::forget(region.begin, region.bytes);
  }
  if (dynamic_bytes == 0) return;
  // Unordered blocks would seem to race for one block of memory.
  if (dynamic_blocks.empty() || settings().unordered) dynamic_blocks.push_back(allocate_block(dynamic_bytes));
  fill({static_cast<char*>(dynamic_blocks.back()), dynamic_bytes});
}

void free_shared_memory() {
  for (void* block : dynamic_blocks) free_block(block);
  dynamic_blocks.clear();
}

void* dynamic_shared_memory() {
  const races::Unseen unseen;
  if (dynamic_blocks.empty()) fail("dynamic_shared: the kernel was launched without dynamic shared memory", Site{});
  return dynamic_blocks.back();
}

}  // namespace heed::emulated
