#!/bin/sh
# check_examples.sh PROGRAM...: every example prints what the comment at its top shows, line by line.
status=0
for program in "$@"; do
  source=examples/$(basename "$program").cpp
  expected=$(sed -n '/^\/\/ Output:$/,/^#include/p' "$source" | sed -n 's/^\/\/   //p')
  if [ "$(OMP_NUM_THREADS=1 "$program")" = "$expected" ]; then
    echo "$program prints what its comment shows"
  else
    echo "$program does not print what its comment shows:" >&2
    OMP_NUM_THREADS=1 "$program" >&2
    status=1
  fi
done
exit $status
