# SPDX-License-Identifier: Apache-2.0
"""Made-up samples of documented public traces become traces: examples/python/public_traces.py."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
11,u1,vc1,1,4,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:42:01,2020-06-09 18:52:01,600,60
12,u2,vc1,16,64,2,FAILED,2020-06-09 18:41:31,2020-06-09 18:41:31,2020-06-09 18:41:31,0,0
13,u2,vc1,0,8,1,COMPLETED,2020-06-09 18:41:32,2020-06-09 18:41:32,2020-06-09 18:45:36,244,0
"""
KALOS = """job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
dlc1,u7,8,64,960,1000,100.0,Pretrain,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,,,18,10.0,1152.0
dlc2,u7,1,8,96,500,100.0,Evaluation,CANCELLED,2023-05-17 20:01:08+08:00,,,,,,,
"""
ATTEMPT = {"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 01:01:00", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}
PHILLY = json.dumps([
    {"status": "Pass", "vc": "v", "jobid": "a", "submitted_time": "2017-10-07 00:59:00", "user": "u",
     "attempts": [ATTEMPT, {**ATTEMPT, "start_time": "2017-10-07 01:02:00", "end_time": "2017-10-07 01:04:00"}]},
    {"status": "Pass", "vc": "v", "jobid": "b", "submitted_time": "2017-10-07 01:00:00", "user": "w", "attempts": [{**ATTEMPT, "end_time": None}]},
    {"status": "Killed", "vc": "v", "jobid": "c", "submitted_time": "2017-10-07 01:00:00", "user": "w", "attempts": []}])
DLRM = """instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time
i1,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,
i2,HN,app_1,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,100.0,110.0,170.0
i3,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1.0,1.0,9.0
"""
SPOT = """job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
1,13,A10,20,1,1,0,500,HP
2,57,A100-SXM4-80GB,15,0.5,16,9,41060,Spot
"""


def convert(path):
    return subprocess.run([sys.executable, ROOT / "examples/python/public_traces.py", path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("text, said, rows", [
    (HELIOS, "2 of 3", [(0, 600, False, 1, 1, 4_000, 0, "", "u1", "training"), (30, 1, False, 2, 8, 32_000, 0, "", "u2", "training")]),
    (KALOS, "1 of 2", [(0, 8, False, 8, 8, 120_000, 1_024_000, "Pretrain", "u7", "training")]),
    (PHILLY, "2 of 3", [(0, 180, False, 1, 2, 0, 0, "", "u", "training"), (60, 0, True, 1, 2, 0, 0, "", "w", "training")]),
    (DLRM, "2 of 3", [(0, 0, True, 1, 1, 12_000, 122_880, "app_0", "", "inference"), (100, 60, False, 1, 1, 12_000, 122_880, "app_1", "", "inference")]),
    (SPOT, "2 of 2", [(0, 500, False, 1, 1, 20_000, 0, "", "13", "training"), (9, 41_060, False, 16, 1, 15_000, 0, "", "57", "best-effort")]),
], ids=["helios", "kalos", "philly", "dlrm", "spot"])
def test_a_public_trace_becomes_jobs(horus, tmp_path, text, said, rows):
    (tmp_path / "in").write_text(text, "utf-8")
    done = convert(tmp_path / "in")
    assert done.returncode == 0 and done.stderr.startswith(said)
    (tmp_path / "plain.csv").write_text(done.stdout, "utf-8")
    c = horus.Trace.from_file(tmp_path / "plain.csv").columns()
    assert [(c["submit_us"][i] // 10**6, c["duration_us"][i] // 10**6, bool(c["endless"][i]), c["tasks"][i], c["gpus_per_task"][i], c["cpu_milli"][i],
             c["mem_mib"][i], c["profile"][i], c["owner"][i], c["kind"][i]) for i in range(len(c["tasks"]))] == rows


def test_another_file_is_refused_by_its_columns(tmp_path):
    (tmp_path / "in").write_text("a,b\n1,2\n", "utf-8")
    done = convert(tmp_path / "in")
    assert done.returncode == 1 and "line 1: expected the columns of Helios" in done.stderr and done.stderr.rstrip().endswith("found a, b")
