#!/usr/bin/python3
"""ten_steps.py OUT.safetensors: ten training steps of heed's text classifier, in PyTorch and float64.

Embedding 30 x 8, projection 8 -> 12, sinusoidal positions, one pre-norm nn.TransformerEncoderLayer (3 heads, FFN 16, GELU) with a final
LayerNorm, mean over the real tokens, linear layer to 2 classes; AdamW (lr 0.01, weight decay 0.1 on matrices only), gradients clipped to
norm 1. The file holds ids, lengths, labels of ten batches, the initial and the final weights, and losses and gradient norms of the steps.
Needs python3-torch and python3-numpy; made with PyTorch 1.13.
"""
import json, math, struct, sys
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)
V, E, C, H, FFN, B, STEPS = 30, 8, 12, 3, 16, 4, 10


def positions(T):
    p, w = torch.arange(T)[:, None].double(), torch.exp(torch.arange(0, C, 2).double() * (-math.log(10000.0) / C))
    out = torch.zeros(T, C)
    out[:, 0::2], out[:, 1::2] = torch.sin(p * w), torch.cos(p * w)
    return out


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, E)
        self.project = nn.Linear(E, C)
        layer = nn.TransformerEncoderLayer(C, H, FFN, 0.0, 'gelu', batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, nn.LayerNorm(C))
        self.fc = nn.Linear(C, 2)

    def forward(self, ids, lengths):
        hidden = torch.arange(ids.size(1))[None] >= lengths[:, None]  # (B, T) True: padding
        x = self.project(self.embedding(ids)) + positions(ids.size(1))
        x = self.encoder(x, src_key_padding_mask=hidden)
        x = x.masked_fill(hidden[:, :, None], 0).sum(1) / lengths[:, None]
        return self.fc(x)


model = Classifier().train()
tensors = {}
for name, p in model.named_parameters():
    with torch.no_grad():  # PyTorch starts biases at 0 and norms at 1; random values test more
        p.add_(torch.randn_like(p) * 0.1)
    tensors['initial.' + name] = p.detach().numpy().copy()
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{'params': decay, 'weight_decay': 0.1}, {'params': rest, 'weight_decay': 0.0}], lr=0.01)
losses, norms = [], []
for step in range(STEPS):
    T = 3 + step % 5
    lengths = torch.randint(1, T + 1, (B,))
    lengths[0] = T
    ids = torch.randint(1, V, (B, T)) * (torch.arange(T)[None] < lengths[:, None])
    labels = torch.randint(0, 2, (B,))
    loss = F.cross_entropy(model(ids, lengths), labels)
    optimizer.zero_grad()
    loss.backward()
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
    optimizer.step()
    losses.append(loss.item())
    for key, value in (('ids', ids), ('lengths', lengths), ('labels', labels)):
        tensors['%s.%d' % (key, step)] = value.numpy().astype(np.int32)
for name, p in model.named_parameters():
    tensors['final.' + name] = p.detach().numpy()
tensors['losses'], tensors['norms'] = np.array(losses), np.array(norms)

header, offset, data = {}, 0, b''
for name in sorted(tensors, key=lambda n: (-tensors[n].itemsize, n)):
    a = np.ascontiguousarray(tensors[name])
    header[name] = {'dtype': {'f': 'F64', 'i': 'I32'}[a.dtype.kind], 'shape': list(a.shape), 'data_offsets': [offset, offset + a.nbytes]}
    offset += a.nbytes
    data += a.tobytes()
text = json.dumps(header, separators=(',', ':')).encode()
text += b' ' * (-len(text) % 8)
open(sys.argv[1], 'wb').write(struct.pack('<Q', len(text)) + text + data)
print('losses', losses)
