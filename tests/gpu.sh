#!/usr/bin/env bash
# gpu.sh: builds and tests the device cuda on a machine with an NVIDIA GPU and nvcc, and times it beside PyTorch if that is there. No
# network is needed; with 16 cores it takes less than five minutes.
#
#   tests/gpu.sh                    with the packages of README.md installed
#   tests/gpu.sh --pack DIR         on a machine that has them: copies what the build needs of them into DIR
#   tests/gpu.sh --packages DIR     on a machine that lacks them: takes them from there
#   tests/gpu.sh --dry              tries this script without a GPU: device emulated, small sizes, g++ alone
#
# Each stage prints its outcome and goes on if another failed; what it printed is in build/gpu/STAGE.log. The last line is
# "N passed, N failed"; exit 1 if anything failed.
set -u
cd "$(dirname "$0")/.." || exit 1

packages='' dry=''
refuse() { echo "tests/gpu.sh: $1" >&2; exit "${2:-1}"; }

# ---- packages: headers of OpenBLAS, doctest, CLI11 and nlohmann-json; the library with what it depends on, but what g++ brings

header_folder() {  # NAME: the folder in which g++ finds it
  local path
  # shellcheck disable=SC2086
  path=$(echo "#include <$1>" | ${CXX:-g++} ${BLAS_INCLUDES:--I/usr/include/$triplet/openblas-openmp} -E -M -x c++ - 2>/dev/null |
    tr ' ' '\n' | grep -m1 "/$1\$")
  [ -n "$path" ] || refuse "--pack: there is no <$1>; install the packages of README.md first"
  echo "${path%/"$1"}"
}

pack() {  # DIR
  local triplet library from
  triplet=$(${CXX:-g++} -print-multiarch)
  library=${BLAS_DIR:-/usr/lib/$triplet/openblas-openmp}/libopenblas.so.0
  [ -e "$library" ] || refuse "--pack: there is no $library; install the packages of README.md first"
  mkdir -p "$1/include" "$1/lib" || exit 1
  for header in cblas.h openblas_config.h; do
    from=$(header_folder $header) && cp "$from/$header" "$1/include/" || exit 1
  done
  for header in CLI/CLI.hpp nlohmann/json.hpp doctest/doctest.h; do
    from=$(header_folder $header) && cp -r "$from/${header%/*}" "$1/include/" || exit 1
  done
  cp -L "$library" "$1/lib/" || exit 1
  ldd "$library" | sed -nE 's/.* => (.*\/lib(gfortran|quadmath)\.so[^ ]*) .*/\1/p' | while read -r needed; do cp -L "$needed" "$1/lib/"; done
  echo "$(du -sh "$1" | cut -f1) in $1"
}

while [ $# -gt 0 ]; do
  case $1 in
    --pack) [ $# = 2 ] || refuse "--pack takes a folder" 2; pack "$2"; exit ;;
    --packages) [ $# -ge 2 ] || refuse "--packages takes a folder" 2; packages=$(realpath -e "$2" 2>/dev/null) || refuse "there is no folder $2"; shift 2 ;;
    --dry) dry=1; shift ;;
    *) refuse "there is no option $1; see the top of this file" 2 ;;
  esac
done

# ---- what the machine has

device=cuda build=build/cuda
if [ -n "$dry" ]; then
  device=emulated build=build${packages:+/packages}
else
  nvidia-smi -L 2>/dev/null | grep -q '^GPU' || refuse "there is no NVIDIA GPU: nvidia-smi lists none; --dry tries this script without"
  nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
  [ -x "$nvcc" ] || refuse "there is no nvcc: install the CUDA Toolkit 12 or newer, or say where it is with CUDA_HOME"
  arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d '. ')
  nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader
  "$nvcc" --version | grep release
fi
if [ -n "$packages" ]; then
  [ -f "$packages/lib/libopenblas.so.0" ] || refuse "$packages was not made by --pack: it has no lib/libopenblas.so.0"
  export BLAS_INCLUDES="-isystem $packages/include"
  # By RPATH, not RUNPATH: so libgfortran is found for libopenblas, too, and no other program (PyTorch) gets either.
  export BLAS_LIBS="-L$packages/lib -Wl,--disable-new-dtags,-rpath,$packages/lib -l:libopenblas.so.0"
fi
for python in "${PYTHON:-}" python3 /usr/bin/python3; do
  [ -n "$python" ] && "$python" -c 'import torch' 2>/dev/null && break
  python=''
done
echo "$(nproc) cores; PyTorch: ${python:-none}"

# ---- stages

passed=0 failed=0 logs=build/gpu
mkdir -p $logs
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000}

stage() {  # NAME FUNCTION: 0 is ok, 77 is skipped for the reason in its last line. A failure shows the end of its log
  local start=$SECONDS log="$logs/$1.log" status
  "$2" >"$log" 2>&1
  status=$?
  case $status in
    0)
      passed=$((passed + 1))
      grep -E '^(\||heed on|[0-9]+ (passed|compared)|epoch [0-9]+ [a-z]|========= ERROR)' "$log"
      echo "== $1: ok, $((SECONDS - start)) s" ;;
    77) echo "== $1: skipped ($(tail -1 "$log")), $((SECONDS - start)) s" ;;
    *) failed=$((failed + 1)); tail -25 "$log" | cut -c1-300; echo "== $1: FAILED, $((SECONDS - start)) s" ;;
  esac
  return $status
}
skip() { echo "$1"; return 77; }
built() { [ -n "${is_built:-}" ] || skip "there is no build"; }

build() {
  if [ -n "$dry" ]; then
    make BUILD="$build" "$build/heed" "$build/heed-tests"
  else
    timeout 240 make cuda-tests ARCH="$arch" NVCC="$nvcc"
  fi && "$build/heed" info && "$build/heed" info | grep -E "^device $device " | grep -v absent
}

tests() {  # all that runs kernels, ops or training on a device, with its results compared
  built || return
  local cases='kernels: *,ops: *,gpu: a wrong index*,gpu: fused attention*,gpu: training*,ten training steps*,optimizers move*'
  [ -n "$dry" ] && cases='kernels: softmax*,kernels: attention: odd*,gpu: a wrong index*,optimizers move*'
  HEED_TEST_DEVICES=$device timeout 120 "$build/heed-tests" --test-case="$cases"
}

training() {  # the same seed on both devices: the losses of each epoch must be near
  built || return
  local data='reviews --limit 640 --epochs 2' out
  out=$(mktemp -d)
  if [ -n "$dry" ]; then
    awk 'BEGIN { for (i = 0; i < 60; i++) print "a film of " i % 7 " and " i % 11 "\t" (i % 3 ? "bad" : "good") }' >"$out/few.tsv"
    data="$out/few.tsv --epochs 2 --batch 8 --embed 8 --hidden 8 --heads 2 --ffn 8"
  fi
  # shellcheck disable=SC2086
  for each in cpu $device; do
    timeout 60 "$build/heed" train --data $data --seed 1 --device $each --out "$out/$each" || { rm -rf "$out"; return 1; }
  done
  paste -d, "$out/cpu/log.csv" "$out/$device/log.csv" | awk -F, -v device=$device '
    NR == 1 { for (i = 1; i <= NF / 2; i++) if ($i == "train_loss" || $i == "validation_loss") column[i] = $i; next }
    { for (i in column) {
        a = $i; b = $(i + NF / 2); d = a > b ? a - b : b - a
        if (a == "" && b == "") continue
        printf "epoch %d %s: cpu %s, %s %s\n", $1, column[i], a, device, b
        compared++; if (!(a ~ /[0-9]/ && b ~ /[0-9]/ && d <= 1e-4)) wrong++ } }
    END { print compared + 0 " compared, " wrong + 0 " differ"; exit !(compared >= 2 && !wrong) }'
  local status=$?
  rm -rf "$out"
  return $status
}

memcheck() {  # one small step of every bench: most kernels, forward and backward
  built || return
  local sanitizer
  [ -z "$dry" ] || skip "a dry run has no GPU's memory to check" || return
  sanitizer=$(command -v compute-sanitizer || echo "$(dirname "$nvcc")/compute-sanitizer")
  [ -x "$sanitizer" ] || skip "there is no compute-sanitizer" || return
  timeout 90 "$sanitizer" --tool memcheck --error-exitcode 9 "$build/heed" bench --device cuda --small --seconds 0 --steps 1 --warmup 0
}

times() {
  built || return
  command -v "${python:=python3}" >/dev/null || skip "there is no Python" || return
  local options="--device cuda --seconds 1"
  [ -n "$dry" ] && options="--device cpu --heed-device emulated --seconds 0 --small"
  # shellcheck disable=SC2086
  timeout 170 "$python" tests/gpu_torch.py --heed "$build/heed" $options
}

stage build build && is_built=1
stage tests tests
stage training training
stage memcheck memcheck
stage times times
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
