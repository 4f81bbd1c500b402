#!/usr/bin/python3
"""extract.py FOLDER: picks what the tests need out of FOLDER/golden.safetensors and FOLDER/index.json, which golden.py writes.

For every set below it writes SET.safetensors and SET.json beside this script. golden.py (with models.py) is the record of how the
numbers were made, with PyTorch 2.6 in float64; neither is needed to run the tests.
"""
import json
import os
import struct
import sys

SETS = {
    'modules': '''
        article000_example sdpa sdpa_causal sdpa_padding sdpa_causal_padding sdpa_cross sdpa_tile sdpa_tile_causal
        linear_module single_head_000 basic_attention_002 mha_002 mha_002_wide textclassifier_002
        mhsa_003 mhsa_003_causal mhsa_003_padding nn_mha nn_mha_heads nn_mha_cross_kpm nn_mha_causal
        enc_layer_post_relu enc_layer_post_gelu enc_layer_post_masks
        enc_layer_pre_relu enc_layer_pre_gelu enc_layer_pre_masks sinusoidal_pe''',
    'models': 'dec_layer_post dec_layer_pre vit_tiny chargpt_tiny',
}

# Optimizer trajectories, clipped gradients and schedules: plain tensors, by their names in the file.
TENSORS = {
    'train': '''
        opt/A opt/b opt/x0 opt/sgd/traj opt/sgd_wd/traj opt/sgd_mom/traj opt/sgd_damp/traj opt/sgd_nesterov/traj opt/adam/traj
        opt/adam_l2/traj opt/adam_betas_eps/traj opt/adamw/traj opt/adamw_default/traj opt/rmsprop/traj opt/rmsprop_full/traj
        opt/embedding_Adam/traj opt/embedding/ids
        clip/clipped/before0 clip/clipped/before1 clip/clipped/after0 clip/clipped/after1 clip/untouched/before0
        clip/untouched/before1 clip/untouched/after0 clip/untouched/after1 clip/zero/before0 clip/zero/before1 clip/zero/after0
        clip/zero/after1 sched/step sched/warmup_cosine sched/onecycle''',
}


def tensors_of(case):
    return [*case['inputs'].values(), *case['outputs'], *case['upstream'], *case['grads'].values()]


def read(path):
    data = open(path, 'rb').read()
    size = struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:8 + size])
    begin = 8 + size
    return {name: (t['dtype'], t['shape'], data[begin + t['data_offsets'][0]:begin + t['data_offsets'][1]])
            for name, t in header.items()}


def write(path, tensors):
    header, body = {}, b''
    for name, (dtype, shape, data) in sorted(tensors.items(), key=lambda t: (t[1][0] == 'U8', t[0])):  # wide ones first
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    open(path, 'wb').write(struct.pack('<Q', len(text)) + text + body)


def to_i32(dtype, shape, data):  # heed's index type
    if dtype != 'I64':
        return dtype, shape, data
    count = len(data) // 8
    return 'I32', shape, struct.pack('<%di' % count, *struct.unpack('<%dq' % count, data))


def main(folder):
    here = os.path.dirname(os.path.abspath(__file__))
    index = json.load(open(os.path.join(folder, 'index.json')))
    everything = read(os.path.join(folder, 'golden.safetensors'))
    cases = {case['name']: case for case in index['cases']}
    for name, wanted in TENSORS.items():
        write(os.path.join(here, name + '.safetensors'), {t: to_i32(*everything[t]) for t in wanted.split()})
    for name, wanted in SETS.items():
        chosen = [cases[case] for case in wanted.split()]
        for case in chosen:
            del case['f32']
        write(os.path.join(here, name + '.safetensors'), {t: everything[t] for case in chosen for t in tensors_of(case)})
        with open(os.path.join(here, name + '.json'), 'w') as out:
            json.dump({'made_with': 'PyTorch ' + index['made_with'], 'cases': chosen}, out, indent=1)
            out.write('\n')
        print(name, len(chosen), 'cases')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
