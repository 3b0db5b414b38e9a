# SPDX-License-Identifier: Apache-2.0
"""What sharing could give, before any policy: the bound of `horus potential`."""

import pickle

import pytest

from conftest import built

# Two profiles that leave each other 0.9 of their speed: sharing gives 0.8 more where they meet.
SPEEDS = dict(gpu_types=["v100-pcie-16gb"], profiles=["a", "b"], alone=[[10.0, 20.0]],
              pairs={"gpu": [0], "a": [0], "b": [1], "speed_a": [0.9], "speed_b": [0.9]})


@pytest.fixture
def solver():
    library = built("HORUS_LP_LIBRARY", "lib/libhorus_lp.so")
    if library is None:
        pytest.skip("libhorus_lp.so is not built (HORUS_LP_LIBRARY names it)")
    return library


def test_a_mix_that_shares_well(horus, solver):
    told = []
    found = horus.potential(**SPEEDS, work={"a": 1, "b": 1}, gpus={"v100-pcie-16gb": 4}, slowdown_bounds=[1.05, 1.5],
                            library=solver, progress=told.append)
    assert found.rows["slowdown_bound"].tolist() == [1.05, 1.5] and found.rows["pays"].tolist() == [False, True]
    assert found.rows["gain"].tolist() == pytest.approx([0, 0.8]) and found.exclusive == pytest.approx(4)
    assert (found.pairs, found.run, found.apart, found.left_out, found.pays) == (3, 1, 0, 0, True)
    assert found.rows["admitted"].tolist() == [0, 1] and "sharing pays" in repr(found)
    again = pickle.loads(pickle.dumps(found))
    assert again.rows["rate"].tolist() == found.rows["rate"].tolist() and "<table>" in again._repr_html_()
    columns = horus.potential(**SPEEDS, work=[1.0, 1.0], gpus=[4.0], library=solver)
    assert len(columns.rows["gain"]) == 5  # the default bounds


@pytest.mark.parametrize("change, words", [
    (dict(work={"c": 1}), ("work", "a, b", "'c'")), (dict(work=[1.0]), ("work", "2 rows", "1")),
    (dict(gpus={"v100-pcie-16gb": "x"}), ("gpus", "'x'")), (dict(alone=[[1.0]]), ("alone", "1 GPU types x 2 profiles")),
    (dict(pairs={"nonsense": [1]}), ("pairs", "speed_a", "nonsense")), (dict(slowdown_bounds=[0.5]), ("0.5",)),
    (dict(pairs={"gpu": [0], "a": [0], "b": [1], "speed_a": [0.9]}), ("speeds_b",)), (dict(profiles="ab"), ("profiles", "sequence")),
])
def test_wrong_arguments_are_named(horus, change, words):
    arguments = {**SPEEDS, "work": {"a": 1}, "gpus": {"v100-pcie-16gb": 1}, **change}
    with pytest.raises((horus.Error, TypeError)) as caught:
        horus.potential(**arguments)
    for word in words:
        assert word in str(caught.value)


def test_without_the_solver_it_says_so(horus):
    with pytest.raises(horus.FileError, match="nowhere"):
        horus.potential(**SPEEDS, work={"a": 1}, gpus={"v100-pcie-16gb": 1}, library="/nowhere/libhorus_lp.so")
