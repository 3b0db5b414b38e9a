# SPDX-License-Identifier: Apache-2.0
"""Classifiers, segmentation, detection and video nets that torchvision builds."""
import torch
import torchvision

from nets.spec import Input, Net, image

DOCS = "torchvision 0.15 model documentation (Params and GFLOPS of the listed weights)"
# name: (family, parameters, GFLOPS with a multiply-add as 1, picture size, opset)
CLASSIFIERS = {
    "alexnet": ("alexnet", 61100840, 0.714, 224, 9),
    "vgg11": ("vgg", 132863336, 7.609, 224, 11),
    "vgg13": ("vgg", 133047848, 11.308, 224, 11),
    "vgg16": ("vgg", 138357544, 15.47, 224, 11),
    "vgg19": ("vgg", 143667240, 19.632, 224, 11),
    "resnet18": ("resnet", 11689512, 1.814, 224, 17),
    "resnet34": ("resnet", 21797672, 3.664, 224, 17),
    "resnet50": ("resnet", 25557032, 4.089, 224, 17),
    "resnet101": ("resnet", 44549160, 7.801, 224, 17),
    "resnet152": ("resnet", 60192808, 11.514, 224, 17),
    "resnext50_32x4d": ("resnet", 25028904, 4.23, 224, 17),
    "wide_resnet50_2": ("resnet", 68883240, 11.398, 224, 17),
    "densenet121": ("densenet", 7978856, 2.834, 224, 13),
    "densenet169": ("densenet", 14149480, 3.36, 224, 13),
    "densenet201": ("densenet", 20013928, 4.291, 224, 13),
    "squeezenet1_0": ("squeezenet", 1248424, 0.819, 224, 11),
    "squeezenet1_1": ("squeezenet", 1235496, 0.349, 224, 11),
    "mobilenet_v3_large": ("mobilenet", 5483032, 0.217, 224, 17),
    "shufflenet_v2_x1_0": ("shufflenet", 2278604, 0.145, 224, 13),
    "mnasnet1_0": ("mnasnet", 4383312, 0.314, 224, 13),
    "efficientnet_b0": ("efficientnet", 5288548, 0.386, 224, 17),
    "efficientnet_v2_s": ("efficientnet", 21458488, 8.366, 384, 17),
    "regnet_y_400mf": ("regnet", 4344144, 0.402, 224, 17),
    "convnext_tiny": ("convnext", 28589128, 4.456, 224, 17),
    "vit_b_16": ("vision transformer", 86567656, 17.564, 224, 17),
    "swin_t": ("vision transformer", 28288354, 4.491, 224, 17),
    "mobilenet_v2": ("mobilenet", 3504872, 0.301, 224, 13),
}
UNFOLDED = ("swin_t",)  # folding would replace its position tables by their gathered copies
# Nets on the pictures of CIFAR-10 and GTSRB, their ImageNet stems unchanged: (family, picture size, classes, opset)
SMALL = {
    "resnet50": (("resnet", 32, 10, 17), ("resnet", 75, 43, 17)),
    "mobilenet_v2": (("mobilenet", 32, 10, 13),),
    "inception_v3": (("inception", 75, 43, 13),),
    "efficientnet_v2_s": (("efficientnet", 75, 43, 17),),
}
STATS = "parameters: onnx/models turnkey statistics; GFLOPS: torchvision 0.15 model documentation"


class OneOutput(torch.nn.Module):
    """Segmentation nets return a dictionary; the graph returns its tensors in order."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, picture):
        return tuple(self.net(picture).values())


class DetectorHeads(torch.nn.Module):
    """Backbone and heads of a single-shot detector: what its training loss sees, without box decoding."""

    def __init__(self, net):
        super().__init__()
        self.backbone = net.backbone
        self.head = net.head

    def forward(self, picture):
        heads = self.head(list(self.backbone(picture).values()))
        return heads["bbox_regression"], heads["cls_logits"]


def classifier(name, **options):
    make = getattr(torchvision.models, name)
    return lambda: make(weights=None, **options)


def deit_small():
    """Touvron et al. 2021: the vision transformer with 6 heads of 64 features, without the distillation token."""
    return torchvision.models.VisionTransformer(224, 16, 12, 6, 384, 1536)


def googlenet():
    return torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False)


def inception_v3(classes=1000):
    return torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=False, num_classes=classes)


def small(name, family, size, classes, opset):
    """A classifier of torchvision's on small pictures."""
    build = (lambda: inception_v3(classes)) if name == "inception_v3" else classifier(name, num_classes=classes)
    return Net(f"{name}_{size}px", family, build, image(size), opset=opset, note=f"{classes} classes"
               + (", without the auxiliary classifier" if name == "inception_v3" else ""))


def segmentation(name):
    make = getattr(torchvision.models.segmentation, name)
    return lambda: OneOutput(make(weights=None, weights_backbone=None, num_classes=21, aux_loss=True))


def ssd300():
    return DetectorHeads(torchvision.models.detection.ssd300_vgg16(weights=None, weights_backbone=None))


def cifar_resnet18():
    """The ResNet-18 of CIFAR work: a 3x3 stem without pooling, ten classes."""
    net = torchvision.models.resnet18(weights=None, num_classes=10)
    net.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
    net.maxpool = torch.nn.Identity()
    return net


def nets():
    found = [
        Net(name, family, classifier(name), image(size), source=STATS if name == "mobilenet_v2" else DOCS,
            published_parameters=count, published_gflops=gflops, multiply_add=1, opset=opset, symbolic=name in UNFOLDED)
        for name, (family, count, gflops, size, opset) in CLASSIFIERS.items()
    ]
    found += [
        Net("googlenet", "inception", googlenet, image(224), source=DOCS, published_parameters=6624904,
            published_gflops=1.498, multiply_add=1, opset=13),
        Net("inception_v3", "inception", inception_v3, image(299), source=STATS, published_parameters=23834568,
            published_gflops=5.713, multiply_add=1, opset=13,
            note="without the auxiliary classifier; torchvision's 27161264 counts it"),
        Net("resnet18_cifar", "resnet", cifar_resnet18, image(32), published_parameters=11173962,
            source="summaries of the CIFAR ResNet-18 (3x3 stem) in public write-ups"),
        Net("fcn_resnet50", "segmentation", segmentation("fcn_resnet50"), image(520), ("output", "auxiliary"),
            source=DOCS, published_parameters=35322218, published_gflops=152.717, multiply_add=1),
        Net("deeplabv3_resnet50", "segmentation", segmentation("deeplabv3_resnet50"), image(520),
            ("output", "auxiliary"), source=DOCS, published_parameters=42004074, published_gflops=178.722,
            multiply_add=1),
        Net("ssd300_vgg16", "detection", ssd300, image(300), ("boxes", "scores"), source=DOCS,
            published_parameters=35641826, published_gflops=34.858, multiply_add=1,
            note="backbone and heads; box decoding and suppression are left out"),
        Net("deit_s_16", "vision transformer", deit_small, image(224), published_parameters=22050664,
            source="parameters: timm's deit_small_patch16_224; GFLOPS: its model card (4.6)", published_gflops=4.6,
            multiply_add=1),
        Net("r3d_18", "video", lambda: torchvision.models.video.r3d_18(weights=None),
            (Input("clip", (("batch", 1), 3, 16, 112, 112)),), source=DOCS, published_parameters=33371472,
            published_gflops=40.697, multiply_add=1),
    ]
    return found + [small(name, *variant) for name, variants in SMALL.items() for variant in variants]
