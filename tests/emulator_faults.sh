#!/usr/bin/env bash
# emulator_faults.sh LIBRARY FOLDER COMPILER...: builds faults/faults.cu plain, with AddressSanitizer and UBSan, and for the race
# detector, against LIBRARY (whose objects no sanitizer has touched), and checks for every planted fault who finds it and who does not.
# The last line is "N passed, N failed". Where LIBS is set, it says how to link BLAS.
set -u
library=$1 folder=$2
shift 2
source=tests/faults/faults.cu
export OMP_NUM_THREADS=1 UBSAN_OPTIONS=print_stacktrace=0 TSAN_OPTIONS=halt_on_error=1
passed=0 failed=0
mkdir -p "$folder"

build() {  # NAME FLAGS...
  local name=$1
  shift
  "${compiler[@]}" -g -O1 "$@" -x c++ "$source" -x none "$library" ${LIBS:-} -o "$folder/$name" || exit 1
}
compiler=("$@")
build plain
build asan -fsanitize=address,undefined -fno-omit-frame-pointer
build races -fsanitize=thread

# The line of the source that carries a mark, as "faults.cu:LINE".
line() { echo "faults.cu:$(grep -n "// .*$1\$" "$source" | head -1 | cut -d: -f1)"; }

check() {  # FAULT BUILD SETTINGS WHAT-IT-MUST-PRINT
  local fault=$1 build=$2 settings=$3 expected=$4 out
  out=$(HEED_EMULATOR=$settings timeout 60 "$folder/$build" "$fault" 2>&1)
  if grep -qE -- "$expected" <<<"$out"; then
    passed=$((passed + 1))
    printf '%-23s %-6s %-14s %s\n' "$fault" "$build" "$settings" "$(grep -E -m1 -- "$expected" <<<"$out" | cut -c1-150)"
  else
    failed=$((failed + 1))
    printf '%-23s %-6s %-14s FAILED: no "%s" in:\n%s\n' "$fault" "$build" "$settings" "$expected" "$(head -20 <<<"$out")"
  fi
}

race_at() { echo "#0 .*$(line "races: $1")"; }

# The right kernels raise no alarm anywhere.
for settings in order=forward order=reverse order=random guard=1; do check none plain $settings '^right values'; done
for settings in order=forward order=reverse guard=1; do check none asan $settings '^right values'; done
for settings in order=forward order=reverse unordered=1; do check none races $settings '^right values'; done

# fault                      build settings       what it must print
check missing_barrier        plain order=forward  '^wrong values'
check missing_barrier        plain order=reverse  '^wrong values'
check missing_barrier        races order=forward  "$(race_at missing_barrier)"
check missing_second_barrier plain order=forward  '^wrong values'
check missing_second_barrier plain order=reverse  '^wrong values'
check missing_second_barrier races order=forward  "$(race_at missing_second_barrier)"
check out_of_bounds          plain order=forward  '^right values'   # not found
check out_of_bounds          plain guard=1        '^twice: thread \(104, 0, 0\) of block \(7, 0, 0\): access to byte 4000, beyond the end of an allocation of 4000 bytes'
check out_of_bounds          asan  order=forward  "#0 .*$(line out_of_bounds)"
check wrong_index            plain order=forward  '^wrong values'
check wrong_index            asan  order=forward  '^wrong values'   # only the comparison finds it
check wrong_index            races order=forward  '^wrong values'
check missing_atomic         plain order=forward  '^right values'   # not found
check missing_atomic         races order=forward  '^right values'   # not found: blocks seem to follow one another
check missing_atomic         races unordered=1    "$(race_at missing_atomic)"
check skipped_barrier        plain order=forward  '^exception: normalize: block \(0, 0, 0\) cannot go on: 64 threads wait in __syncthreads at .*faults.cu:[0-9]+ .*64 of 128 have returned'
check different_barriers     plain order=forward  '^exception: normalize: block .* 64 threads wait .* 64 threads wait .*, 0 of 128 have returned'
check bad_mask               plain order=reverse  '^exception: normalize: thread \(127, 0, 0\) of block .*: lane 31 is not in its own mask 0xffff'
check bad_mask               plain order=forward  'lane 0 reads lane 16, which is not in the mask 0xffff'
check short_warp             plain order=forward  'names lanes that do not exist; this warp has 16'
check shared_overrun         asan  order=forward  'AddressSanitizer: global-buffer-overflow'
check unwritten_shared       plain order=forward  '^wrong values'
check misaligned_float4      asan  order=forward  "$(line misaligned_float4):[0-9]+: runtime error: .* misaligned address"
check host_reads             plain order=forward  '^right values'   # not found
check host_reads             plain guard=1        '^the host: access to byte 0, closed to the host, of an allocation of 64 bytes'
check host_reads             asan  order=forward  'AddressSanitizer: use-after-poison'
check leading_dimension      plain order=forward  '^exception: cublas gemm: matrix a .* leading dimension 5 and stride 0 takes 56 bytes, but its allocation of 48 bytes'

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
