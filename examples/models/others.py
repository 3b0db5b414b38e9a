#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares zoo.csv with what timm, transformers and diffusers build of the same configurations.

  pip install timm==1.0.11 transformers==4.38.2 diffusers==0.27.2 "huggingface_hub<0.24"
  others.py           every net of OTHERS
  others.py NET...    these nets only

Runs on torch 1.13 and downloads no weights. Parameters must be equal, multiply-adds within 2 %: macs.py counts them
while torch runs the models with unfilled weights.
Language models run with one layer and with two: further layers add what the second added.
"""
import csv
import pathlib
import re
import sys

import torch

import macs
from nets import storage


def build(make):
    return storage.build_unfilled(make).eval()


def layered(make, config, inputs):
    """Parameters and multiply-adds of a language model of many equal layers."""
    layers, counts, sizes = config.num_hidden_layers, [], []
    tied = "lm_head.weight" if config.tie_word_embeddings else ""  # untied where weights are unfilled
    for config.num_hidden_layers in (1, 2):
        model = build(lambda: make(config))
        sizes.append(sum(p.numel() for name, p in model.named_parameters() if name != tied))
        counts.append(macs.forward_macs(model, inputs, hollow=True))
    return tuple(pair[0] + (layers - 1) * (pair[1] - pair[0]) for pair in (sizes, counts))


def decoder(kind, **options):
    import transformers
    config = getattr(transformers, kind + "Config")(use_cache=False, **options)
    return layered(getattr(transformers, kind + "ForCausalLM"), config, (torch.ones(1, 128, dtype=torch.long),))


def whole(make, *inputs, without="$^"):
    """Parameters, the names that match `without` left out, and multiply-adds of a model run as it is."""
    class Call(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = make()

        def forward(self, *values):
            return self.model(**values[0]) if isinstance(values[0], dict) else self.model(*values)
    model = build(Call)
    size = sum(p.numel() for name, p in model.named_parameters() if not re.search(without, name))
    return size, macs.forward_macs(model, inputs, hollow=True)


def deit():
    import timm
    timm.layers.set_fused_attn(False)
    return whole(lambda: timm.create_model("deit_small_patch16_224"), torch.ones(1, 3, 224, 224))


def clip():
    import transformers
    text = dict(vocab_size=49408, hidden_size=512, num_hidden_layers=12, num_attention_heads=8, intermediate_size=2048)
    config = transformers.CLIPConfig(text_config=text, vision_config=dict(patch_size=16))
    inputs = dict(input_ids=torch.ones(1, 77, dtype=torch.long), pixel_values=torch.ones(1, 3, 224, 224))
    return whole(lambda: transformers.CLIPModel(config), inputs, without="logit_scale")


def whisper():
    import transformers
    config = transformers.WhisperConfig(
        d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
        encoder_ffn_dim=3072, decoder_ffn_dim=3072, use_cache=False)
    inputs = dict(input_features=torch.ones(1, 80, 3000), decoder_input_ids=torch.ones(1, 64, dtype=torch.long))
    return whole(lambda: transformers.WhisperForConditionalGeneration(config), inputs,
                 without="encoder.embed_positions.weight|proj_out.weight")  # fixed; tied


def sdxl():
    import diffusers
    plain, text = "DownBlock2D", "CrossAttnDownBlock2D"
    make = lambda: diffusers.UNet2DConditionModel(
        sample_size=128, down_block_types=(plain, text, text), block_out_channels=(320, 640, 1280),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), attention_head_dim=(5, 10, 20),
        transformer_layers_per_block=(1, 2, 10), cross_attention_dim=2048, use_linear_projection=True,
        addition_embed_type="text_time", addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816)
    inputs = dict(sample=torch.ones(1, 4, 128, 128), timestep=torch.ones(1),
                  encoder_hidden_states=torch.ones(1, 77, 2048),
                  added_cond_kwargs=dict(text_embeds=torch.ones(1, 1280), time_ids=torch.ones(1, 6)))
    return whole(make, inputs)


def dit():
    import diffusers
    make = lambda: diffusers.Transformer2DModel(
        num_attention_heads=16, attention_head_dim=72, in_channels=4, out_channels=8, num_layers=28, sample_size=32,
        patch_size=2, attention_bias=True, activation_fn="gelu-approximate", num_embeds_ada_norm=1000,
        norm_type="ada_norm_zero", norm_elementwise_affine=False)
    one = torch.ones(1, dtype=torch.long)
    return whole(make, dict(hidden_states=torch.ones(1, 4, 32, 32), timestep=one, class_labels=one),
                 without=r"blocks\.[1-9]\d*\.norm1\.emb")  # one for all layers in the authors' code


WIDE = dict(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
            intermediate_size=14336)
OTHERS = {
    "deit_s_16": deit,
    "clip_vit_b_16": clip,
    "whisper_small": whisper,
    "llama3_8b": lambda: decoder("Llama", vocab_size=128256, **WIDE),
    "mistral_7b": lambda: decoder("Mistral", vocab_size=32000, **WIDE),
    "qwen2_5_1b5": lambda: decoder("Qwen2", vocab_size=151936, hidden_size=1536, num_hidden_layers=28,
                                   num_attention_heads=12, num_key_value_heads=2, intermediate_size=8960,
                                   tie_word_embeddings=True),
    "mixtral_8x7b": lambda: decoder("Mixtral", vocab_size=32000, **WIDE),
    "sdxl_unet": sdxl,
    "dit_xl_2": dit,
}


def main():
    with (pathlib.Path(__file__).parent / "zoo.csv").open(newline="") as source:
        rows, wrong = {row["net"]: row for row in csv.DictReader(source)}, 0
    for name in sys.argv[1:] or OTHERS:
        size, count = OTHERS[name]()
        own_size, own_count = int(rows[name]["parameters_exact"]), int(rows[name]["own_forward_macs"])
        differs = size != own_size or abs(count / own_count - 1) > 0.02
        wrong += differs
        print(f"{name}: parameters {size} (zoo.csv {own_size}), multiply-adds {count} (zoo.csv {own_count}, "
              f"{100 * (count / own_count - 1):+.2f} %){' DIFFERS' if differs else ''}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
