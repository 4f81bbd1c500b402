// Memory blocks of the devices that compute on the host.
#pragma once
#include <cstddef>
#include <vector>

namespace heed {

class Device;
class Shape;

// A block for device.allocate(): `bytes` > 0, aligned to 64 bytes. DeviceError if there is no memory for it.
void* allocate_host(Device& device, size_t bytes);
void release_host(void* block);

// DeviceError "out of memory" naming the op if the host cannot have that many bytes for a tensor of this shape.
void require_host_memory(const char* op, size_t bytes, const Shape& shape);
// As many zeros as a tensor of this shape has elements; ShapeError or that DeviceError if there cannot be so many.
std::vector<double> host_numbers(const char* op, const Shape& shape);

// Whether freed blocks are kept for reuse. Not under a sanitizer that watches memory: reuse would hide overruns,
// uses after free and reads of what was never written.
bool keeps_freed_blocks();

}  // namespace heed
