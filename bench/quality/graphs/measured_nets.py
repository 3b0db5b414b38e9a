# SPDX-License-Identifier: Apache-2.0
"""The nets of measured tables that are not timm's, for measured_others.py: torchvision's, transformers', decoders.

Sizes are the published configurations. Language nets are open in batch and length. Where dropout is not 0 by default
the graph holds it, because those steps trained with it: a step of inference does not run it.
"""
import dataclasses
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples" / "models"))  # nets/

from nets.spec import Input, Net, image

TOKENS = 8        # of the trace; the graphs leave it open
XMEM_PIXELS = 86  # CIFAR-10, resized


@dataclasses.dataclass(frozen=True)
class Measured(Net):
    dropout: bool = False


def torchvision_net(name, **settings):
    def build():
        import torch
        import torchvision
        net = getattr(torchvision.models, name)(weights=None, **settings)
        if name.startswith("vgg"):  # at 86 pixels its pooling enlarges 2 x 2 to 7 x 7, which has no ONNX form
            net.avgpool = torch.nn.Upsample(size=(7, 7))
        return net
    return build


def timm_net(name):
    def build():
        import timm
        return timm.create_model(name, pretrained=False, exportable=True)
    return build


def wide_squeeze(name):
    """EfficientNet whose squeeze layers are a quarter of the expanded channels, not of the block's input."""
    def build():
        import torchvision
        from torchvision.ops.misc import SqueezeExcitation
        inner = torchvision.models.efficientnet.MBConv

        class Wide(inner):
            def __init__(self, settings, drop, norm):
                wide = lambda channels, _, activation: SqueezeExcitation(channels, channels // 4, activation)
                super().__init__(settings, drop, norm, se_layer=wide)

        torchvision.models.efficientnet.MBConv = Wide
        try:
            return getattr(torchvision.models, name)(weights=None)
        finally:
            torchvision.models.efficientnet.MBConv = inner
    return build


def transformers_net(model_class, settings_class, inputs, **settings):
    """A model of transformers that gives its first result."""
    def build():
        import torch
        import transformers

        class Whole(torch.nn.Module):
            def __init__(self):
                super().__init__()
                config = getattr(transformers, settings_class)(use_cache=False, **settings)
                self.net = getattr(transformers, model_class)(config)

            def tie(self):
                self.net.tie_weights()
                for module in self.net.modules():  # BERT's head has one bias under two names
                    if hasattr(module, "decoder") and hasattr(module, "bias"):
                        module.decoder.bias = module.bias

            def forward(self, *values):
                return self.net(**dict(zip(inputs, values)), return_dict=False)[0]

        return Whole()
    return build


def decoder_net(*sizes, **settings):
    def build():
        from measured_decoder import Decoder
        return Decoder(*sizes, **settings)
    return build


def text(words, *, length="seq", name="input_ids"):
    return Input(name, (("batch", 2), (length, TOKENS)), "int", words)


def language(name, family, build, words, parameters, source, **fields):
    fields = {"inputs": (text(words),), "output_axes": {"logits": {0: "batch", 1: "seq"}}, **fields}
    return Measured(name, family, build, outputs=("logits",), source=source, published_parameters=parameters,
                    symbolic=True, **fields)


def picture(name, family, build, pixels, parameters, source):
    return Measured(f"{name}-{pixels}px", family, build, image(pixels), ("classes",), source, parameters, symbolic=True)


def gpt2(name, family, words, positions, width, layers, heads, parameters, source, inner=None):
    build = transformers_net("GPT2LMHeadModel", "GPT2Config", ("input_ids",), vocab_size=words, n_positions=positions,
                             n_embd=width, n_layer=layers, n_head=heads, n_inner=inner)
    return language(name, family, build, words, parameters, source, dropout=True)


def opt(name, family, width, layers, heads, parameters):
    build = transformers_net("OPTForCausalLM", "OPTConfig", ("input_ids",), vocab_size=50272, hidden_size=width,
                             word_embed_proj_dim=width, ffn_dim=4 * width, num_hidden_layers=layers,
                             num_attention_heads=heads, max_position_embeddings=2048)
    return language(name, family, build, 50272, parameters, f"config.json of facebook/{name}", dropout=True)


def decoder(name, family, sizes, parameters, source, **settings):
    return language(name, family, decoder_net(*sizes, **settings), sizes[0], parameters, source)


def pictures():
    whole = "torchvision's table of weights"
    ten = "torchvision's, with 10 classes in place of 1000"
    made = [(name, torchvision_net(name), parameters, whole) for name, parameters in (
        ("convnext_base", 88591464), ("convnext_tiny", 28589128), ("mobilenet_v2", 3504872),
        ("regnet_x_400mf", 5495976), ("resnet101", 44549160), ("vgg16", 138357544), ("vgg19", 143667240))]
    made += [(name, torchvision_net(name, num_classes=10), parameters, ten) for name, parameters in (
        ("mobilenet_v3_large", 5483032 - 990 * 1281), ("mobilenet_v3_small", 2542856 - 990 * 1025))]
    small = [picture(name, name, build, XMEM_PIXELS, parameters, source) for name, build, parameters, source in made]
    return small + [
        picture("resnet50", "resnet", torchvision_net("resnet50"), 224, 25557032, whole),
        picture("resnext101_32x4d", "resnet", timm_net("resnext101_32x4d"), 224, 44177704, "timm's table"),
        picture("seresnext101_32x4d", "resnet", timm_net("seresnext101_32x4d"), 224, 48955416, "timm's table"),
        picture("efficientnet_b0", "efficientnet", torchvision_net("efficientnet_b0"), 224, 5288548, whole),
        picture("efficientnet_b4", "efficientnet", torchvision_net("efficientnet_b4"), 380, 19341616, whole),
        picture("efficientnet_widese_b0", "efficientnet", wide_squeeze("efficientnet_b0"), 224, None,
                "NVIDIA DeepLearningExamples, efficientnet-widese-b0"),
        picture("efficientnet_widese_b4", "efficientnet", wide_squeeze("efficientnet_b4"), 380, None,
                "NVIDIA DeepLearningExamples, efficientnet-widese-b4"),
    ]


def languages():
    card = "config.json of "
    shapes = "NeuSight, data/DLmodel_configs"
    neo = transformers_net("GPTNeoForCausalLM", "GPTNeoConfig", ("input_ids",), vocab_size=50257, hidden_size=768,
                           num_layers=12, num_heads=12, attention_types=[[["global", "local"], 6]])
    t5 = transformers_net("T5ForConditionalGeneration", "T5Config", ("input_ids", "decoder_input_ids"))
    bert = transformers_net("BertLMHeadModel", "BertConfig", ("input_ids",), hidden_size=1024, num_hidden_layers=24,
                            num_attention_heads=16, intermediate_size=4096)
    return [
        language("gpt-neo-125m", "gpt-neo", neo, 50257, 125198592, card + "EleutherAI/gpt-neo-125M"),
        language("t5-small", "t5", t5, 32128, 60506624, card + "t5-small", dropout=True,
                 inputs=(text(32128, length="src_seq"), text(32128, length="tgt_seq", name="decoder_input_ids")),
                 output_axes={"logits": {0: "batch", 1: "tgt_seq"}}),
        gpt2("cerebras-gpt-111m", "cerebras-gpt", 50257, 2048, 768, 10, 12, 111000000,
             card + "cerebras/Cerebras-GPT-111M", 3072),
        gpt2("gpt2", "gpt2", 50257, 1024, 768, 12, 12, 124439808, card + "openai-community/gpt2"),
        gpt2("gpt2-large", "gpt2", 50257, 1024, 1280, 36, 20, 774030080, card + "openai-community/gpt2-large"),
        gpt2("gpt3-xl", "gpt2", 50257, 2048, 3072, 24, 24, None, shapes),
        gpt2("gpt3-2.7b", "gpt2", 50257, 2048, 2560, 32, 32, None, shapes),
        opt("opt-125m", "opt", 768, 12, 12, 125239296),
        opt("opt-1.3b", "opt", 2048, 24, 32, 1315758080),
        language("bert-large-lm", "bert", bert, 30522, 335174458, card + "bert-large-uncased", dropout=True),
    ]


def decoders():
    """Words, layers, width, heads, heads of keys and values, width of a head, width between."""
    llama, card = (128256, 28, 3072, 24, 8, 128, 8192), "config.json of "
    qwen, qwen7 = (151936, 24, 2048, 16, 16, 128, 5504), (151936, 32, 4096, 32, 32, 128, 11008)
    card_llama, card_qwen = card + "meta-llama/Llama-3.2-3B", card + "Qwen/Qwen-"
    attention = ("q_proj", "v_proj")
    feed = ("gate_proj", "up_proj", "down_proj")
    every = ("q_proj", "k_proj", "v_proj", "o_proj") + feed
    return [
        decoder("llama-3.2-3b", "llama-3.2-3b", llama, 3212749824, card_llama, tied=True),
        *(decoder(f"llama-3.2-3b-lora-qv{rank}", "llama-3.2-3b", llama, 3212749824 + 28 * rank * 11264 - 28 * rank * 1024,
                  card_llama + "; PEFT", tied=True, adapters=attention, rank=rank) for rank in (32, 64)),
        decoder("llama-3.2-3b-lora-mlp10", "llama-3.2-3b", llama, 3222211584, card_llama + "; PEFT", tied=True,
                adapters=feed, rank=10),
        decoder("qwen3-4b", "qwen3", (151936, 36, 2560, 32, 8, 128, 9728), 4022468096, card + "Qwen/Qwen3-4B", tied=True,
                head_norms=True),
        decoder("qwen2-1.5b-untied", "qwen2", (151936, 28, 1536, 12, 2, 128, 8960), 1777088000,
                card + "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", bias=True),
        decoder("qwen-1.8b", "qwen-1.8b", qwen, 1836828672, card_qwen + "1_8B", bias=True),
        decoder("qwen-7b", "qwen-7b", qwen7, 7721324544, card_qwen + "7B", bias=True),
        decoder("qwen-1.8b-lora64", "qwen-1.8b", qwen, None, card_qwen + "1_8B; finetune.py", bias=True, adapters=every,
                rank=64),
        decoder("qwen-7b-lora64", "qwen-7b", qwen7, None, card_qwen + "7B; finetune.py", bias=True, adapters=every,
                rank=64),
    ]


def all_nets():
    return {net.name: net for net in pictures() + languages() + decoders()}
