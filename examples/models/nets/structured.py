# SPDX-License-Identifier: Apache-2.0
"""Nets over graphs, tables, points, game frames and sound."""
import torch
from torch import nn
from torch.nn.functional import hardtanh, max_pool2d, normalize

from nets.language import BertLayer
from nets.spec import Input, Net, image

# Rows of the 26 categorical columns of the Criteo Kaggle data set (Naumov et al. 2019, public DLRM code).
CRITEO = (1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10,
          5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572)
ML20M_ITEMS = 20108  # Liang et al. 2018, table 1


class Gcn(nn.Module):
    """Kipf and Welling 2017: two layers over a dense, normalised adjacency matrix."""

    def __init__(self, features=1433, width=16, classes=7):
        super().__init__()
        self.first, self.second = nn.Linear(features, width), nn.Linear(width, classes)

    def forward(self, x, adjacency):
        return adjacency @ self.second(torch.relu(adjacency @ self.first(x)))


class SageLayer(nn.Module):
    """Hamilton et al. 2017: a node's own features and the mean over its incoming edges."""

    def __init__(self, inner, outer):
        super().__init__()
        self.inner = inner
        self.mean, self.own = nn.Linear(inner, outer), nn.Linear(inner, outer, bias=False)

    def forward(self, x, source, target):
        sums = torch.zeros_like(x).scatter_add(0, target.unsqueeze(1).expand(-1, self.inner), x[source])
        ones = torch.ones_like(target).to(x.dtype)
        degree = torch.zeros_like(x[:, 0]).scatter_add(0, target, ones).clamp(min=1.0)
        return self.mean(sums / degree.unsqueeze(1)) + self.own(x)


class GraphSage(nn.Module):
    """Three layers with batch normalisation: the node classifier of ogbn-arxiv."""

    def __init__(self, features=128, width=256, classes=40):
        super().__init__()
        self.layers = nn.ModuleList([SageLayer(features, width), SageLayer(width, width), SageLayer(width, classes)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(width), nn.BatchNorm1d(width)])

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        for layer, norm in zip(self.layers, self.norms):
            x = torch.relu(norm(layer(x, source, target)))
        return self.layers[-1](x, source, target)


def mlp(sizes, last):
    layers = []
    for inner, outer in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inner, outer), nn.ReLU()]
    return nn.Sequential(*layers[:-1], last)


class Dlrm(nn.Module):
    """Naumov et al. 2019: one embedding a column, all pairs multiplied, two perceptrons."""

    def __init__(self, rows=CRITEO, width=16):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(count, width) for count in rows)
        self.bottom = mlp((13, 512, 256, 64, width), nn.ReLU())
        fields = len(rows) + 1
        self.top = mlp((width + fields * (fields - 1) // 2, 512, 256, 1), nn.Sigmoid())
        self.pairs = [row * fields + column for row in range(fields) for column in range(row)]

    def forward(self, dense, categories):
        x = self.bottom(dense)
        fields = torch.stack([x] + [table(categories[:, i]) for i, table in enumerate(self.tables)], 1)
        products = (fields @ fields.transpose(1, 2)).flatten(1).index_select(1, torch.tensor(self.pairs))
        return self.top(torch.cat([x, products], 1))


class ItemAutoencoder(nn.Module):
    """Normalised item vector to a narrow layer and back (the MovieLens-20M recommender of cluster traces)."""

    def __init__(self, items=ML20M_ITEMS, width=200):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(items, width), nn.Linear(width, items)

    def forward(self, watched):
        return self.decoder(torch.tanh(self.encoder(normalize(watched))))


class MultVae(nn.Module):
    """Liang et al. 2018: items-600-200-600-items, sampling from the given noise."""

    def __init__(self, items=ML20M_ITEMS, inner=600, width=200):
        super().__init__()
        self.encoder, self.moments = nn.Linear(items, inner), nn.Linear(inner, 2 * width)
        self.decoder, self.output = nn.Linear(width, inner), nn.Linear(inner, items)

    def forward(self, watched, noise):
        mean, log_variance = self.moments(torch.tanh(self.encoder(normalize(watched)))).chunk(2, 1)
        code = mean + noise * torch.exp(0.5 * log_variance)
        return self.output(torch.tanh(self.decoder(code))), mean, log_variance


class ActorCritic(nn.Module):
    """Mnih et al. 2016 with an LSTM cell: four pooled convolutions over an 80x80 frame, six actions."""

    def __init__(self, actions=6):
        super().__init__()
        self.conv = nn.ModuleList([nn.Conv2d(1, 32, 5, padding=2), nn.Conv2d(32, 32, 5, padding=1),
                                   nn.Conv2d(32, 64, 4, padding=1), nn.Conv2d(64, 64, 3, padding=1)])
        self.cell = nn.LSTMCell(1024, 512)
        self.critic, self.actor = nn.Linear(512, 1), nn.Linear(512, actions)

    def forward(self, frame, state, cell):
        for conv in self.conv:
            frame = torch.relu(max_pool2d(conv(frame), 2))
        state, cell = self.cell(frame.flatten(1), (state, cell))
        return self.critic(state), self.actor(state), state, cell


class ActorCriticRollout(ActorCritic):
    """One update of A3C: the net unrolled over the frames of an episode's part, its state carried on."""

    def forward(self, frames, state, cell):
        values, policies = [], []
        for frame in frames.unbind(0):
            value, policy, state, cell = super().forward(frame, state, cell)
            values.append(value)
            policies.append(policy)
        return torch.stack(values), torch.stack(policies), state, cell


def dqn(actions=6):
    """Mnih et al. 2015: three convolutions over four 84x84 frames."""
    return nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3),
                         nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions))


class DeepSpeech2(nn.Module):
    """Amodei et al. 2016: two convolutions over a spectrogram, five bidirectional GRU layers, letters out."""

    def __init__(self, width=800, layers=5, letters=29):
        super().__init__()
        self.width = width
        self.conv1, self.norm1 = nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(32)
        self.conv2, self.norm2 = nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)), nn.BatchNorm2d(32)
        sizes = [32 * 41] + [width] * (layers - 1)
        self.cells = nn.ModuleList(nn.GRU(size, width, bidirectional=True, batch_first=True) for size in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(layers))
        self.output = nn.Linear(width, letters, bias=False)

    def forward(self, spectrogram):
        x = hardtanh(self.norm1(self.conv1(spectrogram)), 0.0, 20.0)
        x = hardtanh(self.norm2(self.conv2(x)), 0.0, 20.0)
        x = x.flatten(1, 2).transpose(1, 2)  # [batch, time, features]
        for cell, norm in zip(self.cells, self.norms):
            both, _ = cell(x)
            x = both.view(both.shape[0], both.shape[1], 2, self.width).sum(2)  # forward plus backward
            x = norm(x.transpose(1, 2)).transpose(1, 2)
        return self.output(x).log_softmax(-1)


class Wav2Vec2(nn.Module):
    """Baevski et al. 2020, base: seven convolutions over raw sound, a positional convolution, twelve layers."""

    def __init__(self, width=768, layers=12, heads=12):
        super().__init__()
        kernels, strides = (10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2)
        self.conv = nn.ModuleList(nn.Conv1d(512 if i else 1, 512, k, s, bias=False)
                                  for i, (k, s) in enumerate(zip(kernels, strides)))
        self.first_norm, self.norm = nn.GroupNorm(512, 512), nn.LayerNorm(512)
        self.project = nn.Linear(512, width)
        self.place, self.place_norm = nn.Conv1d(width, width, 128, padding=64, groups=16), nn.LayerNorm(width)
        self.layers = nn.ModuleList(BertLayer(width, heads) for _ in range(layers))

    def forward(self, sound):
        x = sound.unsqueeze(1)
        for index, conv in enumerate(self.conv):
            x = conv(x)
            x = nn.functional.gelu(self.first_norm(x) if index == 0 else x)
        x = self.project(self.norm(x.transpose(1, 2)))
        place = self.place(x.transpose(1, 2))[:, :, :-1]
        x = self.place_norm(x + nn.functional.gelu(place).transpose(1, 2))
        for layer in self.layers:
            x = layer(x, None)
        return x


def points(*sizes):
    layers = []
    for inner, outer in zip(sizes, sizes[1:]):
        layers += [nn.Conv1d(inner, outer, 1), nn.BatchNorm1d(outer), nn.ReLU()]
    return nn.Sequential(*layers)


def dense(*sizes):
    layers = []
    for inner, outer in zip(sizes, sizes[1:-1]):
        layers += [nn.Linear(inner, outer), nn.BatchNorm1d(outer), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


class Align(nn.Module):
    """Predicts a square matrix from the points and applies it to them."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.points, self.dense = points(width, 64, 128, 1024), dense(1024, 512, 256, width * width)

    def forward(self, x):
        matrix = self.dense(self.points(x).max(-1)[0]).view(-1, self.width, self.width)
        return (matrix + torch.eye(self.width)).transpose(1, 2) @ x


class PointNet(nn.Module):
    """Qi et al. 2017, classification of 1024 points into forty classes."""

    def __init__(self, classes=40):
        super().__init__()
        self.align_input, self.lift = Align(3), points(3, 64, 64)
        self.align_features, self.features = Align(64), points(64, 64, 128, 1024)
        self.classify = dense(1024, 512, 256, classes)

    def forward(self, x):
        x = self.align_features(self.lift(self.align_input(x)))
        return self.classify(self.features(x).max(-1)[0])


def nets():
    nodes, edges, state = ("nodes", 2708), ("edges", 114688), (("batch", 1), 512)
    ogb = "Open Graph Benchmark, ogbn-arxiv leaderboard (FLAG with GraphSAGE)"
    items = (("batch", 1), ML20M_ITEMS)
    return [
        Net("gcn_cora", "graph network", Gcn, (Input("features", (nodes, 1433)), Input("adjacency", (nodes, nodes))),
            output_axes={"output": {0: "nodes"}}, note="dense adjacency; 2708 nodes as in Cora"),
        Net("graphsage_arxiv", "graph network", GraphSage,
            (Input("features", (("nodes", 16384), 128)), Input("edges", (2, edges), "int", 16384)),
            source=ogb, published_parameters=218664, output_axes={"output": {0: "nodes"}},
            note="edge list with scattered sums; the default is a part of the graph with seven edges a node"),
        Net("dlrm_criteo", "recommender", Dlrm,
            (Input("dense", (("batch", 1), 13)), Input("categories", (("batch", 1), 26), "int", 3)), symbolic=True),
        Net("autoencoder_ml20m", "recommender", ItemAutoencoder, (Input("watched", items),),
            note="all items at once; training that samples negatives computes fewer"),
        Net("multvae_ml20m", "recommender", MultVae, (Input("watched", items), Input("noise", (("batch", 1), 200))),
            ("output", "mean", "log_variance")),
        Net("a3c_pong", "reinforcement learning", ActorCritic,
            (*image(80, 1, "frame"), Input("state", state), Input("cell", state)),
            ("value", "policy", "next_state", "next_cell")),
        Net("a3c_pong_rollout", "reinforcement learning", ActorCriticRollout,
            (Input("frames", (20, ("batch", 1), 1, 80, 80)), Input("state", state), Input("cell", state)),
            ("values", "policies", "next_state", "next_cell"),
            output_axes={"values": {1: "batch"}, "policies": {1: "batch"}, "next_state": {0: "batch"},
                         "next_cell": {0: "batch"}},
            note="one update: a3c_pong unrolled over 20 frames"),
        Net("dqn_atari", "reinforcement learning", dqn, image(84, 4, "frames"),
            source="public write-ups of the 2015 network with six actions", published_parameters=1687206),
        Net("deepspeech2", "speech", DeepSpeech2, (Input("spectrogram", (("batch", 1), 1, 161, ("seq", 400))),),
            ("letters",), opset=14, output_axes={"letters": {0: "batch", 1: "frames"}}),
        Net("wav2vec2_base", "speech", Wav2Vec2, (Input("sound", (("batch", 1), ("seq", 16000))),), ("hidden",),
            "Baevski et al. 2020, section 4.2 (95M)", 95000000, 1000000,
            output_axes={"hidden": {0: "batch", 1: "frames"}}),
        Net("pointnet", "point cloud", PointNet, (Input("points", (("batch", 1), 3, 1024)),),
            source="Qi et al. 2017, table 6 (3.5M, 440M)", published_parameters=3500000, rounding=100000,
            published_gflops=0.44, multiply_add=1),
    ]
