#!/usr/bin/env python3
"""Times heed beside PyTorch: the models of `heed bench` (train/bench.cpp), written in PyTorch, in turns with heed, so that both see the
same machine. Prints one table in Markdown: medians of a step in milliseconds, and the peak memory of both.

  gpu_torch.py --heed build/cuda/heed --device cuda
  gpu_torch.py --heed build/heed --device cpu --seconds 1        # without a GPU

Columns: "eager" is the model as one writes it; "tuned" has PyTorch's fused attention and fused Adam; "compiled" is the tuned model under
torch.compile. "-": this PyTorch, or this device, has none of it, or PyTorch is not there at all.
"""
import argparse
import json
import math
import signal
import statistics
import subprocess
import sys
import time

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError as error:
    torch = None
    print('gpu_torch.py: there is no PyTorch: %s' % error, file=sys.stderr)

NAMES = ['classifier', 'encoder', 'attention-512', 'attention-1024', 'attention-2048']
VARIANTS = ['eager', 'tuned', 'compiled']


def models(args):
    """name -> function of (tuned, compiled) that returns one step."""
    device, small = args.device, args.small

    def attend(q, k, v, dropout, fused):  # q, k, v: (B, H, T, D)
        if fused:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
        return (F.dropout(weights, dropout) if dropout else weights) @ v

    class Attention(nn.Module):
        def __init__(self, dim, heads, dropout, fused):
            super().__init__()
            self.heads, self.dropout, self.fused = heads, dropout, fused
            self.qkv_proj, self.out_proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = [y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.qkv_proj(x).chunk(3, dim=-1)]
            return self.out_proj(attend(q, k, v, self.dropout, self.fused).transpose(1, 2).reshape(B, T, C))

    class Classifier(nn.Module):
        def __init__(self, vocab, dim, fused):
            super().__init__()
            self.embedding, self.attention, self.fc = nn.Embedding(vocab, dim), Attention(dim, 4, 0, fused), nn.Linear(dim, 2)

        def forward(self, ids):
            return self.fc(self.attention(self.embedding(ids)).mean(dim=1))

    class Block(nn.Module):  # nn.TransformerEncoderLayer with norm_first, from separate ops
        def __init__(self, dim, dropout, fused):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.attention = Attention(dim, 4, dropout, fused)
            self.linear1, self.linear2, self.dropout = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim), nn.Dropout(dropout)

        def forward(self, x):
            x = x + self.dropout(self.attention(self.norm1(x)))
            return x + self.dropout(self.linear2(self.dropout(F.gelu(self.linear1(self.norm2(x))))))

    class Encoder(nn.Module):
        def __init__(self, dim, fused):
            super().__init__()
            self.layers = nn.Sequential(Block(dim, 0.1, fused), Block(dim, 0.1, fused))
            self.norm, self.fc = nn.LayerNorm(dim), nn.Linear(dim, 2)

        def forward(self, x):
            return self.fc(self.norm(self.layers(x)).mean(dim=1))

    def training(model, x, target, lr, tuned, compiled):
        model.to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        if tuned and device == 'cuda':
            optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
        forward = torch.compile(model, dynamic=False) if compiled else model

        def step():
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(forward(x), target).backward()
            optimizer.step()
        return step

    def classifier(tuned, compiled):
        B, T, V, C = (2, 16, 50, 16) if small else (32, 256, 20000, 256)
        ids, target = torch.randint(0, V, (B, T), device=device), torch.randint(0, 2, (B,), device=device)
        return training(Classifier(V, C, tuned), ids, target, 1e-3, tuned, compiled)

    def encoder(tuned, compiled):
        B, T, C = (2, 16, 16) if small else (16, 256, 256)
        x, target = torch.randn(B, T, C, device=device), torch.randint(0, 2, (B,), device=device)
        return training(Encoder(C, tuned), x, target, 1e-4, tuned, compiled)

    def attention(T):
        def make(tuned, compiled):
            shape = (1, 2, T // 16, 16) if small else (4, 4, T, 64)
            q, k, v = [torch.randn(*shape, device=device, requires_grad=True) for _ in range(3)]
            dy = torch.randn(*shape, device=device)
            forward = torch.compile(attend, dynamic=False) if compiled else attend

            def step():
                q.grad = k.grad = v.grad = None
                forward(q, k, v, 0.0, tuned).backward(dy)
            return step
        return make

    return dict(zip(NAMES, [classifier, encoder, attention(512), attention(1024), attention(2048)]))


class TooLong(Exception):
    pass


def too_long(*_):
    raise TooLong('took too long')


def synchronize(device):
    if device == 'cuda':
        torch.cuda.synchronize()


def prepared(make, variant, args, until):
    """The step, after three steps of warming up, with its peak memory in bytes; or None."""
    if variant != 'eager' and not hasattr(F, 'scaled_dot_product_attention'):
        return None
    if variant == 'compiled' and not hasattr(torch, 'compile'):
        return None
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(max(1, int(until - time.monotonic())))
    try:
        if args.device == 'cuda':
            torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated() if args.device == 'cuda' else 0
        step = make(variant != 'eager', variant == 'compiled')
        if args.device == 'cuda':
            torch.cuda.reset_peak_memory_stats()
        for _ in range(3):
            step()
        synchronize(args.device)
        return step, torch.cuda.max_memory_allocated() - before if args.device == 'cuda' else None
    except Exception as error:  # a compiler that is missing, an operation that this device lacks, the alarm
        print('gpu_torch.py: no %s: %s: %s' % (variant, type(error).__name__, str(error).split('\n')[0][:200]), file=sys.stderr)
        return None
    finally:
        signal.alarm(0)


def median_of(step, args):
    times, end = [], time.perf_counter() + args.seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        synchronize(args.device)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--heed', required=True, help='the program')
    parser.add_argument('--device', default='cuda', help="PyTorch's device, cuda or cpu")
    parser.add_argument('--heed-device', help="heed's, if it is another")
    parser.add_argument('--seconds', type=int, default=1, help='to measure for, each')
    parser.add_argument('--rounds', type=int, default=2, help='heed, PyTorch, heed, PyTorch, ...')
    parser.add_argument('--compile-seconds', type=int, default=60, help='for torch.compile of all models together')
    parser.add_argument('--small', action='store_true', help='small sizes, as in heed bench --small')
    args = parser.parse_args()

    steps, figures, memory, compile_seconds = {}, {}, {}, args.compile_seconds
    if torch:
        torch.manual_seed(1)
        for variant in VARIANTS:
            for name, make in models(args).items():
                start = time.monotonic()
                made = prepared(make, variant, args, start + (compile_seconds if variant == 'compiled' else 60))
                if variant == 'compiled':
                    compile_seconds -= time.monotonic() - start
                if made:
                    steps[name, variant], memory[name, variant] = made
    command = [args.heed, 'bench', '--device', args.heed_device or args.device, '--seconds', str(args.seconds)]
    for _ in range(args.rounds):
        done = subprocess.run(command + ['--small'] * args.small, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit('gpu_torch.py: heed bench failed')
        for figure in map(json.loads, done.stdout.splitlines()):
            figures.setdefault((figure['name'], 'heed'), []).append(figure['median_ms'])
            memory[figure['name'], 'heed'] = figure['peak_bytes']
        for key, step in steps.items():
            figures.setdefault(key, []).append(median_of(step, args))

    def cell(key):
        return '%.3f' % statistics.median(figures[key]) if key in figures else '-'

    def megabytes(key):
        return '%.2f' % (memory[key] / 1e6) if memory.get(key) else '-'

    where = torch.cuda.get_device_name() if torch and args.device == 'cuda' else args.device
    print('heed on %s, PyTorch %s on %s%s; milliseconds a step, medians of %d rounds' % (
        args.heed_device or args.device, torch.__version__ if torch else '-', where, ', small sizes' if args.small else '', args.rounds))
    print()
    print('| | heed | PyTorch eager | tuned | compiled | heed, MB | eager, MB | tuned, MB |')
    print('|---|---|---|---|---|---|---|---|')
    for name in NAMES:
        row = [cell((name, who)) for who in ['heed'] + VARIANTS] + [megabytes((name, who)) for who in ['heed', 'eager', 'tuned']]
        print('| %s | %s |' % (name, ' | '.join(row)))


if __name__ == '__main__':
    main()
