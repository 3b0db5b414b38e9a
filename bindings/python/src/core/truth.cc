// SPDX-License-Identifier: Apache-2.0
// Truths: how fast jobs really run.
#include "sim.h"
#include "speeds.h"

namespace horus_python {
namespace {

std::unique_ptr<TruthHandle> FromModel(const CatalogueHandle* catalogue, const InterferenceHandle* model,
                                       const py::tuple& demands) {
  const std::vector<ProfileDemand> rows = FaceOf(demands, "demands");
  const horus::detail::CProfileDemands believed(rows);
  const horus_interference* c = model == nullptr ? nullptr : model->get();
  return Make<TruthHandle, horus_truth>(
      [&](horus_truth** out, horus_error* error) {
        return horus_truth_from_model(Of(catalogue), c, believed.get(), out, error);
      },
      model == nullptr ? std::vector<py::object>() : model->keeps());
}

const Word kMany[] = {{HORUS_TENANTS_ADD, "add"}, {HORUS_TENANTS_MULTIPLY, "multiply"}, {0, nullptr}};

std::unique_ptr<TruthHandle> FromSpeeds(const CatalogueHandle* catalogue, const std::vector<std::string>& gpu_types,
                                        const std::vector<std::string>& profiles, const py::object& alone,
                                        const py::dict& pairs, uint32_t reference, const py::object& many) {
  const CSpeeds speeds(gpu_types, profiles, alone, pairs, reference);
  const int32_t how = NumberOf(kMany, many, "many");
  return Make<TruthHandle, horus_truth>([&](horus_truth** out, horus_error* error) {
    return horus_truth_from_speeds(Of(catalogue), speeds.get(), how, out, error);
  });
}

std::unique_ptr<TruthHandle> WithSensitivities(const TruthHandle& truth, const py::object& given) {
  const auto sensitivities = Arg<std::vector<horus::ProfileSensitivity>>::From(given, "sensitivities");
  const horus::detail::CProfileSensitivities c(sensitivities);
  return Make<TruthHandle, horus_truth>(
      [&](horus_truth** out, horus_error* error) {
        return horus_truth_with_sensitivities(truth.get(), c.get(), out, error);
      },
      truth.keeps());
}

}  // namespace

std::vector<ProfileDemand> FaceOf(std::vector<ProfileDemand> rows) {
  for (ProfileDemand& row : rows) {
    if (row.gpu_type.empty())
      Raise(HORUS_ERR_NOT_FOUND, "ProfileDemand.gpu_type: expected a GPU type, or 'any', found ''");
    if (row.gpu_type == "any") row.gpu_type.clear();
  }
  return rows;
}

std::vector<ProfileDemand> FaceOf(const py::tuple& rows, const char* what) {
  std::vector<ProfileDemand> copies;
  for (const ProfileDemand* row : PointersOf<ProfileDemand>(rows, what)) copies.push_back(*row);
  return FaceOf(std::move(copies));
}

void BindTruth(py::module_& m) {
  Class<TruthHandle>(m, "TruthHandle")
      .def_static("from_model", &FromModel, py::arg("catalogue").none(true), py::arg("model").none(true),
                  py::arg("demands"),
                  "from_model(catalogue: CatalogueHandle | None, model: InterferenceHandle | None, demands: "
                  "tuple[ProfileDemand, ...]) -> TruthHandle")
      .def_static("from_speeds", &FromSpeeds, py::arg("catalogue").none(true), py::arg("gpu_types"),
                  py::arg("profiles"), py::arg("alone"), py::arg("pairs"), py::arg("reference"), py::arg("many"),
                  "from_speeds(catalogue: CatalogueHandle | None, gpu_types: collections.abc.Sequence[str], profiles: "
                  "collections.abc.Sequence[str], alone: numpy.typing.NDArray[numpy.float64], pairs: dict[str, "
                  "typing.Any], reference: int, many: str) -> TruthHandle")
      .def("with_sensitivities", &WithSensitivities, py::arg("sensitivities"),
           "with_sensitivities(self, sensitivities: collections.abc.Mapping[str, Sensitivity]) -> TruthHandle")
      .def(
          "bytes_held", [](const TruthHandle& t) { return horus_truth_bytes_held(t.get()); },
          "bytes_held(self) -> int");
}

}  // namespace horus_python
