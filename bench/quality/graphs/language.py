# SPDX-License-Identifier: Apache-2.0
"""Language, speech and two-tower models of transformers for export.py: published sizes, two layers, random weights."""
import torch
import transformers

WORDS, TOKENS = 8000, 64  # rows of a word table, length of a sequence
LAYERS = dict(num_hidden_layers=2)
TEXT = ("input_ids", "attention_mask")
PAIR = ("input_ids", "attention_mask", "decoder_input_ids")

# name: class of the model, class of the settings, what differs from their defaults, inputs
MODELS = {
    "bert": ("BertForMaskedLM", "BertConfig", LAYERS, TEXT),
    "bert_classifier": ("BertForSequenceClassification", "BertConfig", LAYERS, TEXT),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", LAYERS, TEXT),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertConfig", dict(n_layers=2), TEXT),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", dict(hidden_size=768, num_attention_heads=12,
                                                         intermediate_size=3072, **LAYERS), TEXT),
    "electra": ("ElectraForPreTraining", "ElectraConfig", LAYERS, TEXT),
    "deberta": ("DebertaForMaskedLM", "DebertaConfig",
                dict(relative_attention=True, pos_att_type=["c2p", "p2c"], **LAYERS), TEXT),
    "deberta_v2": ("DebertaV2ForMaskedLM", "DebertaV2Config",
                   dict(hidden_size=768, num_attention_heads=12, intermediate_size=3072, relative_attention=True,
                        pos_att_type=["c2p", "p2c"], position_buckets=256, norm_rel_ebd="layer_norm",
                        share_att_key=True, **LAYERS), TEXT),
    "mobilebert": ("MobileBertForMaskedLM", "MobileBertConfig", LAYERS, TEXT),
    "mpnet": ("MPNetForMaskedLM", "MPNetConfig", LAYERS, TEXT),
    "convbert": ("ConvBertForMaskedLM", "ConvBertConfig", LAYERS, TEXT),
    "squeezebert": ("SqueezeBertForMaskedLM", "SqueezeBertConfig", LAYERS, TEXT),
    "fnet": ("FNetForMaskedLM", "FNetConfig", LAYERS, TEXT[:1]),
    "funnel": ("FunnelForMaskedLM", "FunnelConfig", dict(block_sizes=[1, 1]), TEXT),
    "xlnet": ("XLNetLMHeadModel", "XLNetConfig", dict(n_layer=2), TEXT),
    "longformer": ("LongformerForMaskedLM", "LongformerConfig", dict(attention_window=[32, 32], **LAYERS), TEXT),
    "bigbird": ("BigBirdForMaskedLM", "BigBirdConfig", dict(attention_type="original_full", **LAYERS), TEXT),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(n_layer=2), TEXT),
    "gpt_neo": ("GPTNeoForCausalLM", "GPTNeoConfig",
                dict(num_layers=2, attention_types=[[["global", "local"], 1]], hidden_size=1024), TEXT),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", dict(hidden_size=1024, num_attention_heads=16,
                                                             intermediate_size=4096, **LAYERS), TEXT),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", dict(n_layer=2, n_embd=1024, n_head=16, rotary_dim=32), TEXT),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig", dict(n_layer=2, n_embd=1024, n_head=16, rotary_dim=32), TEXT),
    "opt": ("OPTForCausalLM", "OPTConfig", LAYERS, TEXT),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(n_layer=2, hidden_size=1024, n_head=16), TEXT),
    "falcon": ("FalconForCausalLM", "FalconConfig", dict(hidden_size=1024, num_attention_heads=16, **LAYERS), TEXT),
    "mpt": ("MptForCausalLM", "MptConfig", dict(n_layers=2, d_model=1024, n_heads=16), TEXT),
    "llama": ("LlamaForCausalLM", "LlamaConfig", dict(hidden_size=1024, num_attention_heads=16,
                                                      intermediate_size=2816, **LAYERS), TEXT),
    "mistral": ("MistralForCausalLM", "MistralConfig",
                dict(hidden_size=1024, num_attention_heads=16, num_key_value_heads=4, intermediate_size=3584,
                     **LAYERS), TEXT),
    "gemma": ("GemmaForCausalLM", "GemmaConfig",
              dict(hidden_size=1024, num_attention_heads=8, num_key_value_heads=1, head_dim=128,
                   intermediate_size=4096, **LAYERS), TEXT),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", dict(hidden_size=1024, num_attention_heads=16,
                                                      num_key_value_heads=4, intermediate_size=2816, **LAYERS), TEXT),
    "phi": ("PhiForCausalLM", "PhiConfig", dict(hidden_size=1024, num_attention_heads=16, intermediate_size=4096,
                                                **LAYERS), TEXT),
    "t5": ("T5ForConditionalGeneration", "T5Config", dict(num_layers=2), PAIR),
    "bart": ("BartForConditionalGeneration", "BartConfig", dict(encoder_layers=2, decoder_layers=2), PAIR),
    "mbart": ("MBartForConditionalGeneration", "MBartConfig", dict(encoder_layers=2, decoder_layers=2), PAIR),
    "pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", dict(encoder_layers=2, decoder_layers=2), PAIR),
    "marian": ("MarianMTModel", "MarianConfig", dict(encoder_layers=2, decoder_layers=2, pad_token_id=0,
                                                     decoder_start_token_id=0), PAIR),
    "clip": ("CLIPModel", "CLIPConfig", dict(text_config=dict(vocab_size=WORDS, **LAYERS), vision_config=LAYERS),
             ("input_ids", "pixel_values", "attention_mask")),
    "vit": ("ViTForImageClassification", "ViTConfig", LAYERS, ("pixel_values",)),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", dict(depths=[1, 1, 1, 1]),
                  ("pixel_values",)),
    "detr": ("DetrForObjectDetection", "DetrConfig",
             dict(encoder_layers=2, decoder_layers=2, use_pretrained_backbone=False), ("pixel_values",)),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", dict(encoder_layers=2, decoder_layers=2),
                ("input_features", "decoder_input_ids")),
    "wav2vec2": ("Wav2Vec2ForCTC", "Wav2Vec2Config", LAYERS, ("input_values",)),
    "hubert": ("HubertForCTC", "HubertConfig", LAYERS, ("input_values",)),
}
SIDE = 224


class Positional(torch.nn.Module):
    """Calls a model with its inputs in order; gives its first result, or those of a two-tower model."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        return self.model(**dict(zip(self.names, values)), return_dict=False)[0]


def sample(name, batch):
    """One input and the names of its axes."""
    if name == "pixel_values":
        return torch.rand(batch, 3, SIDE, SIDE), {0: "batch"}
    if name == "input_features":
        return torch.rand(batch, 80, 3000), {0: "batch"}
    if name == "input_values":
        return torch.rand(batch, 16000), {0: "batch", 1: "samples"}
    length = "target" if name.startswith("decoder") else "sequence"
    tokens = TOKENS // 2 if length == "target" else TOKENS
    if name == "attention_mask":
        return torch.ones(batch, tokens, dtype=torch.int64), {0: "batch", 1: length}
    return torch.randint(3, WORDS, (batch, tokens)), {0: "batch", 1: length}


def build(name, batch):
    """The model, its inputs by name and the names of their axes."""
    model_class, settings_class, changes, inputs = MODELS[name]
    settings = getattr(transformers, settings_class)(**changes)
    if hasattr(settings, "vocab_size"):
        settings.vocab_size = WORDS
    if hasattr(settings, "use_cache"):
        settings.use_cache = False
    for setting in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        if (getattr(settings, setting, None) or 0) >= WORDS:
            setattr(settings, setting, 1)
    model = getattr(transformers, model_class)(settings)
    made = {one: sample(one, batch) for one in inputs}
    return (Positional(model, inputs), {one: value for one, (value, _) in made.items()},
            {one: axes for one, (_, axes) in made.items()})
