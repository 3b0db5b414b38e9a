# SPDX-License-Identifier: Apache-2.0
"""Step times of the loops that people use: torch, Lightning (both packages) and Hugging Face's transformers, where they are installed.

They are far larger than all else that is tested here, so scripts/python does not install them; then these tests are skipped and say
so. By hand: pip install torch lightning pytorch-lightning transformers accelerate. The clock is the test's own: a batch takes 1 s,
whatever is no step 100 s.
"""

import pickle
import sys
import urllib.request

import pytest

BATCH_S, ELSE_S = 1, 100
BATCHES, SAMPLES = 8, 4  # of an epoch; of a batch


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed: real training loops are untested")


@pytest.fixture
def clock(monkeypatch):
    module = pytest.importorskip("horus.steps")
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)

    class Clock:
        ns = 0

        def passes(self, seconds):
            self.ns += seconds * 10**9

    clock = Clock()
    monkeypatch.setattr(module, "_clock", lambda: clock.ns)
    return clock


@pytest.fixture
def steps(clock):
    from horus.steps import Steps

    steps = Steps(0, warmup=0)
    yield steps
    steps.close()


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def lightning(request, torch, monkeypatch):
    (other,) = {"lightning.pytorch", "pytorch_lightning"} - {request.param}
    monkeypatch.delitem(sys.modules, other, raising=False)  # a job uses one of them, though both be installed
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed: its callback is untested")


@pytest.fixture
def transformers(torch):
    pytest.importorskip("accelerate", reason="accelerate is not installed: the callback of transformers is untested")
    return pytest.importorskip("transformers", reason="transformers is not installed: its callback is untested")


def served(steps):
    with urllib.request.urlopen(f"http://127.0.0.1:{steps.port}/metrics", timeout=30) as answer:
        return answer.read().decode()


def test_a_torch_loop_marks_its_steps(torch, steps, clock):
    model = torch.nn.Linear(4, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(BATCHES):
        model(torch.randn(SAMPLES, 4)).sum().backward()
        optimiser.step()
        clock.passes(BATCH_S)
        steps.mark(samples=SAMPLES)
    assert (steps.count, steps.seconds) == (BATCHES - 1, (BATCHES - 1) * BATCH_S)
    assert f"horus_job_samples_total {SAMPLES * (BATCHES - 1)}\n" in served(steps)


def test_a_process_group_of_torch_says_the_rank(torch, clock, tmp_path):
    from horus.steps import Steps

    distributed = torch.distributed
    for rank, serves in ((0, True), (1, False)):
        store = distributed.HashStore()
        distributed.init_process_group("fake" if rank else "gloo", store=store, rank=rank, world_size=rank + 1)
        steps = Steps(0)
        try:
            steps.mark()
            assert (steps.port is not None) == serves
        finally:
            distributed.destroy_process_group()
            steps.close()


def lightning_module(lightning, torch, clock):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            clock.passes(BATCH_S)
            return self.layer(batch).sum()

        def validation_step(self, batch, _):
            clock.passes(ELSE_S)

        def on_save_checkpoint(self, checkpoint):
            clock.passes(ELSE_S)

        def on_train_epoch_start(self):
            clock.passes(ELSE_S)

        def on_train_epoch_end(self):
            clock.passes(ELSE_S)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Module()


def lightning_fit(lightning, torch, clock, callbacks, folder, **options):
    batches = torch.utils.data.DataLoader(torch.randn(BATCHES * SAMPLES, 4), batch_size=SAMPLES)
    trainer = lightning.Trainer(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
                                default_root_dir=folder, callbacks=callbacks, **options)
    trainer.fit(lightning_module(lightning, torch, clock), batches, batches)
    return trainer


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulated", [1, 2])
def test_lightning_counts_optimiser_steps_alone(lightning, torch, steps, clock, tmp_path, accumulated):
    from horus.steps import lightning_callback

    saved = lightning.callbacks.ModelCheckpoint(tmp_path, every_n_train_steps=2, save_top_k=-1)
    trainer = lightning_fit(lightning, torch, clock, [saved, lightning_callback(steps)], tmp_path, max_epochs=3, val_check_interval=4,
                            accumulate_grad_batches=accumulated)
    assert len(list(tmp_path.glob("*.ckpt"))) > 1
    assert trainer.global_step == 3 * BATCHES // accumulated
    assert (steps.count, steps.seconds) == (trainer.global_step, 3 * BATCHES * BATCH_S)
    assert f"horus_job_step_seconds_count {trainer.global_step}\n" in served(steps)


@pytest.mark.filterwarnings("ignore")
def test_lightning_goes_on_where_a_checkpoint_left_off(lightning, torch, steps, clock, tmp_path):
    from horus.steps import lightning_callback

    trainer = lightning_fit(lightning, torch, clock, [lightning_callback(steps)], tmp_path, max_epochs=1,
                            accumulate_grad_batches=2)
    trainer.save_checkpoint(tmp_path / "left.ckpt")
    before = steps.count
    batches = torch.utils.data.DataLoader(torch.randn(BATCHES * SAMPLES, 4), batch_size=SAMPLES)
    again = lightning.Trainer(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
                              default_root_dir=tmp_path, callbacks=[lightning_callback(steps)], max_epochs=3, accumulate_grad_batches=2,
                              enable_checkpointing=False)
    again.fit(lightning_module(lightning, torch, clock), batches, ckpt_path=tmp_path / "left.ckpt")
    assert (before, steps.count, steps.seconds) == (BATCHES // 2, 3 * BATCHES // 2, 3 * BATCHES * BATCH_S)


def huggingface(transformers, torch, clock, callbacks, folder, **options):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels=None):
            clock.passes(BATCH_S if self.training else ELSE_S)
            out = self.layer(x)
            return {"loss": (out - labels).pow(2).mean(), "logits": out}

    class Slow(transformers.TrainerCallback):
        def on_save(self, *_, **__):
            clock.passes(ELSE_S)

        on_epoch_end = on_epoch_begin = on_save

    data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(BATCHES * SAMPLES)]
    options = transformers.TrainingArguments(str(folder), per_device_train_batch_size=SAMPLES, use_cpu=True, report_to=[],
                                             disable_tqdm=True, **options)
    trainer = transformers.Trainer(Net(), options, train_dataset=data, eval_dataset=data, callbacks=[*callbacks, Slow()])
    trainer.train()
    return trainer


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulated", [1, 2])
@pytest.mark.parametrize("when", [{"eval_strategy": "steps", "eval_steps": 2, "save_strategy": "steps", "save_steps": 3},
                                  {"eval_strategy": "epoch", "save_strategy": "epoch"}])
def test_hugging_face_counts_optimiser_steps_alone(transformers, torch, steps, clock, tmp_path, accumulated, when):
    from horus.steps import transformers_callback

    trainer = huggingface(transformers, torch, clock, [transformers_callback(steps)], tmp_path, num_train_epochs=3,
                          gradient_accumulation_steps=accumulated, **when)
    assert len(list(tmp_path.glob("checkpoint-*"))) > 1
    assert trainer.state.global_step == 3 * BATCHES // accumulated
    assert (steps.count, steps.seconds) == (trainer.state.global_step, 3 * BATCHES * BATCH_S)
    assert f"horus_job_step_seconds_count {trainer.state.global_step}\n" in served(steps)


def test_callbacks_go_to_spawned_processes_with_their_settings(steps, lightning, transformers):
    from horus.steps import Steps, lightning_callback, transformers_callback

    for made_by in (lightning_callback, transformers_callback):
        callback = made_by(Steps(9_999, warmup=3))
        other = pickle.loads(pickle.dumps(callback))
        assert type(other).__mro__[1:] == type(callback).__mro__[1:]
        assert made_by is transformers_callback or isinstance(callback, lightning.Callback)
        assert other._steps._settings == callback._steps._settings and other._steps is not callback._steps


def test_the_trainer_says_which_process_serves(clock, lightning, transformers):
    from types import SimpleNamespace as State

    from horus.steps import Steps, lightning_callback, transformers_callback

    for first in (True, False):
        mine, theirs = (make(Steps(0)) for make in (lightning_callback, transformers_callback))
        mine.on_train_start(State(is_global_zero=first, global_step=0), None)
        mine.on_train_batch_start(None, None, None, 0)
        theirs.on_train_begin(None, State(is_world_process_zero=first), None)
        theirs.on_step_begin(None, None, None)
        for callback in (mine, theirs):
            assert (callback._steps.port is not None) == first
            callback._steps.close()
