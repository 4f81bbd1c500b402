# One thread of softmax's block for a long row, from its start to its row's maximum and sum: the session of
# cuda/README.md. Any other gdb command works as well.
set pagination off
set width 0
set confirm off
set print repeats 4
set trace-commands on
break softmax_rows if blockIdx.x == 1 && threadIdx.x == 64
run
print threadIdx
print rows.length
tbreak team_reduce if blockIdx.x == 1 && threadIdx.x == 64
continue
next 3
print value
print *shared@8
next
print threadIdx
print *shared@8
up
finish
next
info locals
print threadIdx
print blockIdx
