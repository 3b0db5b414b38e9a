# SPDX-License-Identifier: Apache-2.0
"""Layouts of datasets.py whose nets need exported graphs: timm, NVIDIA's examples, NeuSight, xMem, PEFT, Qwen.

layout      assumed
timm        as benchmark.py does it: fp16 autocast, momentum in training. Rows that `held_by` holds back are left out, and
            rows whose branches were folded (`reparam`). Near-copies of a family are one family
NVIDIA      PyTorch before 2.0 or TensorFlow, one GPU; a step is batch over rate, data loading inside. Batches that the
            table lacks and the layout (nhwc with amp) are those of PyTorch/Classification/ConvNets/configs.yml;
            momentum, rmsprop for EfficientNet. BERT: the encoder alone, because pre-training predicts few of the
            tokens; 384 tokens where none are given (SQuAD); Adam for LAMB; amp is fp16. Its rows of 512 tokens are left out
NeuSight    PyTorch 2, IEEE float32, NVIDIA's GPUs, one of them; no optimiser ran. A training row whose backward pass is
            below 1.5 forward passes is left out: its forward pass waited for cudaMalloc
operators   of NeuSight: forward passes; each operator with its sizes is a family
xMem        PyTorch 2.6, float32, SGD without momentum, 128 tokens a side (batches of one sentence may be shorter, and
            are noted); rows that ran out of memory are left out. Memory is what the GPU held more than at the start:
            small CNNs take within 60 MiB of what they hold, so that the context was there before; as for PEFT
PEFT        Llama-3.2-3B fully or with plain LoRA, bf16. Memory is the 99th percentile reserved, at the limit of 768
            tokens, and 400 MiB for the context, which it excludes; time is that of the mean length: two rows a method
Qwen        LoRA alone, bf16, A100 SXM 80 GB, PyTorch 2, each layer checkpointed, AdamW; GB are 2^30 bytes, because the
            weights alone would not fit in 1e9. Time where it is given as 2 s for 8 steps or more. Generation
            holds no step, full fine-tuning buffers of DeepSpeed that nothing tells, int4 no graph
"""
import re

MIB = 1 << 20
US_PER_MS, US_PER_S = 1e3, 1e6
GPUS = {"RTX 3090": "rtx-3090", "RTX 4090": "rtx-4090",
        "A100 40GB": "a100-40gb", "A100 80GB": "a100-80gb", "V100 16GB": "v100-sxm2-16gb", "V100 32GB": "v100-sxm2-32gb",
        "T4": "t4", "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb", "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
        "NVIDIA L4": "l4", "Tesla P100-PCIE-16GB": "p100-pcie-16gb", "Tesla P4": "p4", "Tesla T4": "t4",
        "Tesla V100-PCIE-32GB": "v100-pcie-32gb", "NVIDIA A100-SXM4-40GB": "a100-40gb", "NVIDIA L40S": "l40s",
        # Of these the catalogue knows nothing: only the job is known of their rows.
        "NVIDIA GeForce RTX 3060": "opaque:rtx-3060-12gb", "NVIDIA GeForce RTX 4060": "opaque:rtx-4060-8gb"}
MODES = {"train": "training", "infer": "inference", "training": "training", "inference": "inference"}

# timm's modules that are near-copies -> the family that stands for them.
NEAR_COPIES = {**dict.fromkeys(("deit", "eva", "beit", "vision_transformer_relpos"), "vision_transformer"),
               **dict.fromkeys(("resnetv2", "res2net", "senet", "sknet"), "resnet")}


def framework(torch, compiled="0"):
    if compiled == "1":
        return "pytorch-compiled"
    return "pytorch-1" if torch.startswith("1.") else "pytorch"


def timm(rows, stem, writer):
    for r in rows:
        if r["held_by"]:
            writer.leave_out(f"held back ({r['held_by']})")
            continue
        if r["reparam"] == "1":
            writer.leave_out("branches were folded")
            continue
        mode = MODES[r["mode"]]
        graph = writer.exported_for(r["net"], r["image_size"], mode)
        if graph and abs(float(graph["parameters"]) / 1e6 / float(r["params_m"]) - 1) > 0.005:
            writer.leave_out("another net of that name: its parameters are not the graph's")
            continue
        compiled = " compiled" if r["compiled"] == "1" else ""
        writer.add(r["net"], r["net"], size=r["image_size"], mode=mode, precision="amp", batch=r["batch"],
                   family=NEAR_COPIES.get(r["family"], r["family"]), layout=r["layout"], gpu=GPUS[r["gpu"]],
                   optimizer="momentum" if mode == "training" else "", framework=framework(r["torch"], r["compiled"]),
                   step_time_us=f"{float(r['step_time_ms']) * US_PER_MS:.1f}",
                   campaign=f"timm {r['mode']} {r['gpu'].split()[-1]} {r['torch']} {r['layout']}{compiled}")


# Net of the table -> graph, optimiser, and batches of configs.yml: GPU -> (amp, else).
B0 = {"T4": (128, 64), "V100 16GB": (128, 64), "V100 32GB": (256, 128), "A100": (256, 256)}
B4 = {"T4": (32, 16), "V100 16GB": (32, 16), "V100 32GB": (64, 32), "A100": (128, 64)}
NVIDIA = {
    "ResNet-50 v1.5": ("resnet50-224px", "momentum", {"T4": (256, 128), "V100": (256, 112), "A100": (256, 256)}),
    "ResNeXt-101 32x4d": ("resnext101_32x4d-224px", "momentum", {"T4": (128, 64), "V100": (128, 64), "A100": (128, 128)}),
    "SE-ResNeXt-101 32x4d": ("seresnext101_32x4d-224px", "momentum",
                             {"T4": (128, 64), "V100": (112, 64), "A100": (128, 128)}),
    "EfficientNet-B0": ("efficientnet_b0-224px", "rmsprop", B0),
    "EfficientNet-B4": ("efficientnet_b4-380px", "rmsprop", B4),
    "EfficientNet-widese-B0": ("efficientnet_widese_b0-224px", "rmsprop", B0),
    "EfficientNet-widese-B4": ("efficientnet_widese_b4-380px", "rmsprop", B4),
    "BERT-large": ("bert_large", "adam", {})}
SQUAD_TOKENS = "384"


def configured_batch(batches, gpu, precision):
    """What configs.yml says of a GPU; none if nothing."""
    of_gpu = next((told for name, told in batches.items() if gpu.startswith(name)), None)
    return of_gpu[precision != "amp"] if of_gpu else None


def nvidia(rows, stem, writer):
    for r in rows:
        if r["n_gpus"] != "1":
            writer.leave_out("several GPUs")
            continue
        if r["net"] not in NVIDIA:
            writer.leave_out(f"no graph for {r['net']}")
            continue
        net, optimizer, batches = NVIDIA[r["net"]]
        mode, torch, precision = MODES[r["mode"]], r["framework"] == "PyTorch", r["precision"]
        precision = "fp32" if precision == "tf32" and r["gpu"].startswith("V100") else precision  # a slip: it has none
        precision = "amp" if precision == "fp16" and not torch else precision  # both are autocast there
        told = configured_batch(batches, r["gpu"], precision) if torch and mode == "training" else None
        batch = r["batch_per_gpu"] or told
        if not batch:
            writer.leave_out("no batch is told")
            continue
        if r["net"].endswith("B4") and r["gpu"] == "V100 32GB" and mode == "training" and torch:
            writer.leave_out("half the speed of the same GPU with less memory")
            continue
        bert = net == "bert_large"
        if bert and r["seq_len"] == "512":
            writer.leave_out("more tokens a second than at 128, in fp32 beyond a V100's peak: not 512 tokens, it seems")
            continue
        layout = "" if bert else "nhwc" if precision == "amp" or not torch else "nchw"
        writer.add(net, r["net"], mode=mode, batch=batch, optimizer=optimizer if mode == "training" else "",
                   dims=f"seq={r['seq_len'] or SQUAD_TOKENS}" if bert else "",
                   precision=precision, layout=layout, framework="pytorch-1" if torch else "tensorflow",
                   gpu=GPUS[r["gpu"]], step_time_us=f"{int(batch) / float(r['throughput']) * US_PER_S:.1f}",
                   campaign=f"nvidia {r['mode']} {r['framework'].lower()}", note=r["note"] or r["flag"])


NEUSIGHT = {"bert_large": "bert-large-lm", "gpt2_large": "gpt2-large", "gpt3_xl": "gpt3-xl", "gpt3_27": "gpt3-2.7b",
            "opt_13": "opt-1.3b"}
LEAST_BACKWARD = 1.5  # forward passes that a backward pass takes at least


def neusight_nets(rows, stem, writer):
    for r in rows:
        if r["n_gpus"] != "1":
            writer.leave_out("several GPUs")
            continue
        if r["gpu"] not in GPUS:
            writer.leave_out(f"no {r['gpu']} in the catalogue")
            continue
        training = r["mode"] == "training"
        if training and float(r["backward_ms"]) < LEAST_BACKWARD * float(r["forward_ms"]):
            writer.leave_out(f"backward pass below {LEAST_BACKWARD} forward passes")
            continue
        milliseconds = float(r["forward_ms"]) + (float(r["backward_ms"]) if training else 0)
        writer.add(NEUSIGHT.get(r["net"], r["net"]), r["net"], mode=MODES[r["mode"]], precision="fp32-ieee",
                   batch=r["batch"], dims=f"seq={r['seq_len']}", gpu=GPUS[r["gpu"]],
                   framework=framework("2.1", r["compiled"]), step_time_us=f"{milliseconds * US_PER_MS:.1f}",
                   campaign=f"neusight_e2e {r['mode']}" + (" compiled" if r["compiled"] == "1" else ""),
                   note="no optimiser ran" if training else "")


def operator_sizes(r):
    """(graph, batch, dims) of a row."""
    op = r["op"]
    if op == "bmm":
        return "op_bmm", r["gemm_b"], f"rows={r['gemm_m']};inner={r['gemm_k']};columns={r['gemm_n']}"
    if op == "linear":
        rows = int(r["gemm_b"] or 1) * int(r["gemm_m"])
        return "op_linear", str(rows), f"inner={r['gemm_k']};columns={r['gemm_n']}"
    if op == "conv":
        kernel, stride, pad = r["conv_kernel"], r["conv_stride"], r["conv_pad"]
        graph = "op_conv3x3" if (kernel, stride, pad) == ("3", "1", "1") else f"op_conv{kernel}x{kernel}s{stride}p{pad}"
        size = r["conv_in_size"]
        return graph, r["conv_n"], f"channels={r['conv_cin']};filters={r['conv_cout']};height={size};width={size}"
    return f"op_{op}", r["rows_b"], f"width={r['width_h']}"


def neusight_operators(rows, stem, writer):
    for r in rows:
        if r["gpu"] not in GPUS:
            writer.leave_out(f"no {r['gpu']} in the catalogue")
            continue
        graph, batch, dims = operator_sizes(r)
        sizes = "x".join([batch, *re.findall(r"=(\d+)", dims)])
        writer.add(graph, graph, family=f"{graph} {sizes}", mode="inference", precision="fp32-ieee", batch=batch, dims=dims,
                   gpu=GPUS[r["gpu"]], step_time_us=f"{float(r['latency_ms']) * US_PER_MS:.3f}",
                   campaign=f"neusight_ops {r['torch']}")


CONTEXT_MIB = 400  # where a table excludes it
XMEM_PIXELS, XMEM_TOKENS = 86, 128
XMEM = {"mobilenet_v3_large (10 classes)": "mobilenet_v3_large-86px",
        "mobilenet_v3_small (10 classes)": "mobilenet_v3_small-86px",
        "EleutherAI/gpt-neo-125M": "gpt-neo-125m", "cerebras/Cerebras-GPT-111M": "cerebras-gpt-111m",
        "facebook/opt-125m": "opt-125m", "openai-community/gpt2": "gpt2", "t5-small": "t5-small",
        "meta-llama/Llama-3.2-3B-Instruct": "llama-3.2-3b", "Qwen/Qwen3-4B": "qwen3-4b",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": "qwen2-1.5b-untied"}


def xmem(rows, stem, writer):
    for r in rows:
        if r["oom"] == "1":
            writer.leave_out("out of memory: a lower bound alone")
            continue
        cnn = r["family"] == "cnn"
        net = XMEM.get(r["library_id"], f"{r['library_id']}-{XMEM_PIXELS}px")
        names = () if cnn else ("src_seq", "tgt_seq") if net == "t5-small" else ("seq",)
        random_place = "/002-" in r["source"]
        notes = ["zero_grad at a random place"] if random_place else []
        if not cnn and r["batch"] == "1" and "padded" not in r["input"]:
            notes.append("one sentence: its length is unknown, 128 tokens at most")
        writer.add(net, r["net"], family=FAMILIES.get(net, net), batch=r["batch"], optimizer=r["optimizer"].lower(),
                   dims=";".join(f"{name}={XMEM_TOKENS}" for name in names), gpu=GPUS[r["gpu"]], framework="pytorch",
                   precision=r["precision"], mem_mib=f"{int(r['nvml_peak_bytes']) / MIB + CONTEXT_MIB:.1f}",
                   campaign="xmem 2.6", note="; ".join(notes))


FAMILIES = {"gpt2": "gpt2-124m", "opt-125m": "opt-125m"}  # their larger relatives are nets of other tables

PEFT = {"llama-3.2-3B-rank32": "llama-3.2-3b-lora-qv32", "llama-3.2-3B-rank64": "llama-3.2-3b-lora-qv64",
        "llama-3.2-3B-rank10-target-mlp": "llama-3.2-3b-lora-mlp10"}
PEFT_TOKENS = 768
BASE = "model;lm_head"  # prefixes of what LoRA leaves frozen


def peft(rows, stem, writer):
    for r in rows:
        full = r["method"] == "FULL"
        net = "llama-3.2-3b" if full else PEFT.get(r["variant"])
        if r["base_model"] != "meta-llama/Llama-3.2-3B" or not net or not full and r["method"] != "LORA":
            writer.leave_out("no graph holds the method")
            continue
        frozen = {} if full else dict(frozen=BASE)
        same = dict(family="llama-3.2-3b", precision="bf16", optimizer="adamw", framework="pytorch", batch=r["batch"],
                    gpu=GPUS[r["gpu"]], campaign=f"peft {r['torch']}", **frozen)
        memory = int(r["reserved_p99_bytes"]) / MIB + CONTEXT_MIB
        tokens = float(r["tokens_per_s"]) * float(r["ms_per_step"]) / 1e3 / int(r["batch"])
        writer.add(net, r["variant"], dims=f"seq={PEFT_TOKENS}", mem_mib=f"{memory:.1f}",
                   note="99th percentile, at the longest", **same)
        writer.add(net, r["variant"], dims=f"seq={round(tokens)}", note="mean, at the mean length",
                   step_time_us=f"{float(r['ms_per_step']) * US_PER_MS:.1f}", **same)


QWEN = {"Qwen-1.8B": ("qwen-1.8b", 24), "Qwen-7B": ("qwen-7b", 32)}  # graph, layers
QWEN_FROZEN = {"LoRA": BASE, "LoRA (emb)": "model.layers;model.norm"}  # the latter trains both word tables
MICRO_BATCHES, LEAST_SECONDS = 8, 2


def qwen(rows, stem, writer):
    for r in rows:
        if r["task"] != "fine-tune" or r["method"] not in QWEN_FROZEN or r["gpus"] != "1" or r["net"] not in QWEN:
            writer.leave_out("no graph holds the method")
            continue
        net, layers = QWEN[r["net"]]
        seconds = float(r["speed"] or 0)
        time = f"{seconds / MICRO_BATCHES * US_PER_S:.1f}" if seconds >= LEAST_SECONDS else ""
        writer.add(f"{net}-lora64", r["net"], family=net, precision="bf16", optimizer="adamw", framework="pytorch",
                   batch=r["batch"], dims=f"seq={r['seq_len']}", frozen=QWEN_FROZEN[r["method"]],
                   checkpoint_segments=layers, gpu="a100-80gb", mem_mib=f"{float(r['memory_gb']) * 1024:.1f}",
                   step_time_us=time, campaign="qwen 2.0")


# Columns that tell a layout.
LAYOUTS = ((timm, {"net", "family", "layout", "compiled", "torch", "step_time_ms", "params_m", "held_by"}),
           (nvidia, {"net", "n_gpus", "batch_per_gpu", "throughput", "unit", "flag"}),
           (neusight_nets, {"net", "architecture", "seq_len", "forward_ms", "backward_ms"}),
           (neusight_operators, {"op", "rows_b", "width_h", "gemm_b", "conv_n", "latency_ms"}),
           (xmem, {"library_id", "optimizer", "oom", "nvml_peak_bytes"}),
           (peft, {"base_model", "method", "variant", "reserved_p99_bytes"}),
           (qwen, {"task", "net", "method", "kv_cache", "memory_gb", "speed"}))
