// SPDX-License-Identifier: Apache-2.0
// Runs, demands, devices and nodes; see values.h. Jobs: job.cc.
#include "values.h"

#include "record.h"

namespace horus_python {

const Word kModes[] = {{HORUS_MODE_TRAINING, "training"}, {HORUS_MODE_INFERENCE, "inference"}, {0, nullptr}};
const Word kPrecisions[] = {{HORUS_PRECISION_FP32, "fp32"},           {HORUS_PRECISION_TF32, "tf32"},
                            {HORUS_PRECISION_AMP_FP16, "amp"},        {HORUS_PRECISION_AMP_BF16, "amp-bf16"},
                            {HORUS_PRECISION_FP16, "fp16"},           {HORUS_PRECISION_BF16, "bf16"},
                            {HORUS_PRECISION_FP32_IEEE, "fp32-ieee"}, {0, nullptr}};
const Word kOptimizers[] = {{HORUS_OPTIMIZER_SGD, "sgd"},
                            {HORUS_OPTIMIZER_MOMENTUM, "momentum"},
                            {HORUS_OPTIMIZER_ADAM, "adam"},
                            {HORUS_OPTIMIZER_ADAMW, "adamw"},
                            {HORUS_OPTIMIZER_ADAFACTOR, "adafactor"},
                            {HORUS_OPTIMIZER_ADAM_8BIT, "adam-8bit"},
                            {HORUS_OPTIMIZER_RMSPROP, "rmsprop"},
                            {HORUS_OPTIMIZER_ADAGRAD, "adagrad"},
                            {HORUS_OPTIMIZER_ADAMW_BF16, "adamw-bf16"},
                            {0, nullptr}};
const Word kFrameworks[] = {{HORUS_FRAMEWORK_PYTORCH, "pytorch"},
                            {HORUS_FRAMEWORK_PYTORCH_1, "pytorch-1"},
                            {HORUS_FRAMEWORK_TENSORFLOW, "tensorflow"},
                            {HORUS_FRAMEWORK_PYTORCH_COMPILED, "pytorch-compiled"},
                            {HORUS_FRAMEWORK_VLLM, "vllm"},
                            {HORUS_FRAMEWORK_TENSORRT_LLM, "tensorrt-llm"},
                            {HORUS_FRAMEWORK_SGLANG, "sglang"},
                            {0, nullptr}};
const Word kLayouts[] = {{HORUS_LAYOUT_NCHW, "nchw"}, {HORUS_LAYOUT_NHWC, "nhwc"}, {0, nullptr}};
const Word kSharingModes[] = {{0, "default"},
                              {HORUS_SHARING_EXCLUSIVE, "exclusive"},
                              {HORUS_SHARING_TIME_SLICE, "time-slice"},
                              {HORUS_SHARING_MPS, "mps"},
                              {HORUS_SHARING_MIG, "mig"},
                              {HORUS_SHARING_TIME_SLICE_OR_MPS, "time-slice-or-mps"},
                              {0, nullptr}};
const Word kStates[] = {
    {HORUS_STATE_UP, "up"}, {HORUS_STATE_DRAINED, "drained"}, {HORUS_STATE_DOWN, "down"}, {0, nullptr}};

namespace {

void SetBatch(RunSpec& run, py::handle given, const std::string& what) {
  run.batch = given.is_none() ? 0 : Arg<int64_t>::From(given, what);
  if (!given.is_none() && run.batch < 1) {
    Refuse(what, "at least 1, or None for the batch of the file", Shown(given));
  }
}

void BindRun(py::module_& m) {
  Record<RunSpec>(m, "RunSpec", "How a graph is run: what horus_run_spec says.")
      .OneOf("mode", &RunSpec::mode, kModes, "training steps, or inference")
      .OneOf("precision", &RunSpec::precision, kPrecisions, "of weights and matrix work; amp is autocast")
      .OneOf("optimizer", &RunSpec::optimizer, kOptimizers, "of training")
      .Add("batch", "int | None", "int | None", "samples per GPU and step; None = as the file says, else 1", &SetBatch,
           [](const RunSpec& run) { return run.batch == 0 ? py::object(py::none()) : py::object(py::int_(run.batch)); })
      .Field("dims", &RunSpec::dims, "named dimensions of the graph, e.g. {'seq': 128}")
      .Field("checkpoint_segments", &RunSpec::checkpoint_segments, "of activation checkpointing; 0 or 1 = none")
      .Within(0, kNoMost)
      .Field("data_parallel", &RunSpec::data_parallel, "replicas that average their gradients")
      .Within(0, kNoMost)
      .Field("frozen", &RunSpec::frozen, "parameters whose names begin so are not trained")
      .OneOf("framework", &RunSpec::framework, kFrameworks, "that dispatches the kernels")
      .OneOf("layout", &RunSpec::layout, kLayouts, "of images in memory");
}

py::object TraitsOf(const Demand& demand) {
  py::tuple traits(HORUS_TRAIT_COUNT);
  for (size_t i = 0; i < HORUS_TRAIT_COUNT; ++i) traits[i] = demand.traits[i];
  return traits;
}

void SetTraits(Demand& demand, py::handle given, const std::string& what) {
  const auto traits = Arg<std::vector<float>>::From(given, what);
  if (traits.size() != HORUS_TRAIT_COUNT) {
    Refuse(what, std::to_string(HORUS_TRAIT_COUNT) + " numbers", std::to_string(traits.size()));
  }
  for (size_t i = 0; i < traits.size(); ++i) demand.traits[i] = traits[i];
}

void BindDemand(py::module_& m) {
  Record<Demand> record(m, "Demand",
                        "What a job asks of one GPU of one type: predicted, measured or stated. Each pair is an "
                        "estimate and an upper bound; a bound of 0 beside a positive estimate means the same.");
  record.Field("gpu_util_pct", &Demand::gpu_util_pct, "GPU-busy percentage alone on the GPU, 0-100")
      .Within(0, 100)
      .Field("gpu_util_pct_upper", &Demand::gpu_util_pct_upper, "its bound")
      .Within(0, 100)
      .Field("mem_bw_util_pct", &Demand::mem_bw_util_pct, "share of the memory bandwidth, 0-100")
      .Within(0, 100)
      .Field("mem_bw_util_pct_upper", &Demand::mem_bw_util_pct_upper, "its bound")
      .Within(0, 100)
      .Field("mem_mib", &Demand::mem_mib, "peak device memory in MiB, context included")
      .Within(0, kNoMost)
      .Field("mem_mib_upper", &Demand::mem_mib_upper, "its bound: what placement reserves")
      .Within(0, kNoMost)
      .Field("step_time_us", &Demand::step_time_us, "one step alone, in microseconds; 0 = unknown")
      .Within(0, kNoMost)
      .Field("step_time_us_upper", &Demand::step_time_us_upper, "its bound")
      .Within(0, kNoMost)
      .Field("gradient_mib", &Demand::gradient_mib, "all-reduced by each step of a data-parallel gang")
      .Within(0, kNoMost)
      .Field("power_w", &Demand::power_w, "board power in watts; 0 = unknown")
      .Within(0, kNoMost)
      .Field("power_w_upper", &Demand::power_w_upper, "its bound")
      .Within(0, kNoMost)
      .Field("operator_us", &Demand::operator_us, "mean time of an operator, weighted by that time; 0 = unknown")
      .Within(0, kNoMost)
      .Field("host_us", &Demand::host_us,
             "time in which the host makes a step's input with the cores that the job holds; 0 = never the slower")
      .Within(0, kNoMost)
      .Field("duty", &Demand::duty,
             "share of the time in which a service has steps to do; 0 = by the request rate, else all")
      .Within(0, 1)
      .Field("slowdown_bound", &Demand::slowdown_bound,
             "largest slowdown at which a service keeps its promises here; below 1 = not even alone; 0 = none")
      .Within(0, kNoMost)
      .Field("distance", &Demand::distance, "ln of times beyond what the predictor was trained on; 0 = inside")
      .Within(0, kNoMost)
      .Field("profile_id", &Demand::profile_id, "fingerprint of graph and run; 0 = none")
      .Add(
          "flags", "int", "DemandFlag", "sum of horus.DemandFlag",
          [](Demand& demand, py::handle given, const std::string& what) {
            demand.flags = Arg<uint32_t>::From(given, what);
          },
          [](const Demand& demand) -> py::object {
            return py::module_::import("horus.predict").attr("DemandFlag")(demand.flags);
          })
      .Add("traits", "collections.abc.Sequence[float]", "tuple[float, ...]",
           "columns of learned interference models; zeros = unknown", &SetTraits, &TraitsOf);
  const auto flag = [&](const char* name, uint32_t bit, const char* doc) {
    record.type().def_property_readonly(
        name, py::cpp_function([bit](const Demand& d) { return (d.flags & bit) != 0; }, py::is_method(record.type())),
        (std::string(name) + "(self) -> bool\n\n" + doc).c_str());
  };
  flag("given", HORUS_DEMAND_GIVEN, "Stated by the caller.");
  flag("measured", HORUS_DEMAND_MEASURED, "Rests on observations of this very profile.");
  flag("outside", HORUS_DEMAND_OUTSIDE, "The job lies outside what the predictor was trained on.");
  flag("uncalibrated", HORUS_DEMAND_UNCALIBRATED, "The bounds hold at no stated coverage.");
  flag("predicted", HORUS_DEMAND_PREDICTED, "Memory or step time are neither stated nor measured.");
  flag("too_large", HORUS_DEMAND_TOO_LARGE, "What any framework keeps at once exceeds the GPU type's memory.");
  m.attr("MEM_MIB_UNBOUNDED") = HORUS_MEM_MIB_UNBOUNDED;
}

void BindNode(py::module_& m) {
  Record<Device>(m, "Device", "One GPU, or one MIG instance, of a node.", 1)
      .Field("gpu_type", &Device::gpu_type, "name or alias of the catalogue, see horus.gpus()")
      .OneOf("sharing_mode", &Device::sharing_mode, kSharingModes,
             "how jobs share it; default = mig with a MIG profile, else time-slice; time-slice-or-mps = a decision "
             "says which")
      .Field("mig_profile", &Device::mig_profile, "such as 3g.20gb, of a MIG instance")
      .Field("physical_gpu", &Device::physical_gpu, "card that it is on; -1 = a card of its own")
      .Field("nvlink_island", &Device::nvlink_island, "devices with the same number share NVLink; -1 = none")
      .Field("pcie_switch", &Device::pcie_switch, "that it hangs on")
      .Field("socket", &Device::socket, "CPU socket that it hangs on")
      .Field("max_tenants", &Device::max_tenants, "jobs on it at once; 0 = the placer's limit")
      .Within(0, kNoMost)
      .Field("mem_mib", &Device::mem_mib, "memory as the driver reports it; 0 = the catalogue's")
      .Within(0, kNoMost)
      .Field("id", &Device::id, "such as the driver's UUID; unique in the node");
  Record<Node>(m, "Node", "One machine of a cluster.")
      .Field("id", &Node::id, "the caller's; unique in the cluster")
      .Field("name", &Node::name, "for people")
      .Field("cpu_milli", &Node::cpu_milli, "thousandths of a core")
      .Within(0, kNoMost)
      .Field("mem_mib", &Node::mem_mib, "host memory in MiB")
      .Within(0, kNoMost)
      .Field("storage_mb_s", &Node::storage_mb_s, "storage bandwidth; 0 = not tracked")
      .Within(0, kNoMost)
      .Field("network_mb_s", &Node::network_mb_s, "to other nodes, one direction; 0 = 12,000")
      .Within(0, kNoMost)
      .Field("rack", &Node::rack, "nodes with the same number are near")
      .Field("devices", &Node::devices, "its GPUs, numbered from 0 in this order")
      .Field("labels", &Node::labels, "that the selectors of jobs look at");
}

}  // namespace

void BindValues(py::module_& m) {
  BindRun(m);
  BindDemand(m);
  BindNode(m);
}

}  // namespace horus_python
