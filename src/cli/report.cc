// SPDX-License-Identifier: Apache-2.0
// horus report: puts documents into the page, so that nothing in them can end its script element.
#include "cli/report.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"

namespace horus::cli {
namespace {

constexpr std::array<std::string_view, 3> kSchemas = {"horus-shadow", "horus-placement", "horus-potential"};
constexpr size_t kMostBytes = size_t{1} << 30;
constexpr double kMostPrice = 1e6;

absl::Status Write(const PageOptions& options, const Json& documents) {
  const Json data = {{"documents", documents}, {"gpu_hour_price", options.gpu_hour_price}};
  return WriteFileOrDevice(
      options.path,
      absl::StrReplaceAll(kReportPage,
                          {{"{{data}}", absl::StrReplaceAll(JsonText(data, kJsonLine), {{"<", "\\u003c"}})}}));
}

void AddPrice(CLI::App& app, PageOptions& options) {
  AddRanged(app, "--gpu-hour-price", options.gpu_hour_price, "What a GPU costs an hour, for the page", "PRICE", 0.0,
            kMostPrice);
}

absl::StatusOr<Json> Document(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool named = document.is_object() && document.contains("schema") && document["schema"].is_string();
  const std::string schema = named ? document["schema"] : Json("");
  if (std::ranges::find(kSchemas, schema) != kSchemas.end()) return document;
  return InvalidArgument(
      "%s: expected what `horus shadow --json`, `place --json` or `potential --json` prints, found %s", path,
      text.empty()              ? "an empty file"
      : document.is_discarded() ? "no JSON"
                                : "other JSON");
}

absl::StatusOr<std::string> Report(const std::vector<std::string>& paths, const PageOptions& options) {
  Json documents = Json::array();
  for (const std::string& path : paths) HORUS_SET_OR_RETURN(documents.emplace_back(), Document(path));
  HORUS_RETURN_IF_ERROR(Write(options, documents));
  return "";
}

}  // namespace

void AddPageOptions(CLI::App& app, PageOptions& options) {
  AddOption(app, "--html", options.path, "Also write a page for people, with a map of the cluster", "FILE");
  AddPrice(app, options);
}

absl::Status WritePage(const PageOptions& options, const std::string& json) {
  if (options.path.empty()) return absl::OkStatus();
  return Write(options, Json::array({Json::parse(json)}));
}

bool IsForPython(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::filesystem::exists(path, error);
  constexpr size_t kSchemaWithin = 64;
  std::string begin(kSchemaWithin, '\0');
  std::ifstream(path).read(begin.data(), kSchemaWithin);
  begin = absl::StrReplaceAll(begin, {{" ", ""}, {"\n", ""}});
  if (!begin.starts_with("{")) return path.ends_with(".csv");  // else nobody's: Document tells it
  return std::ranges::none_of(kSchemas, [&](std::string_view schema) {
    return begin.find("\"schema\":\"" + std::string(schema) + "\"") != std::string::npos;
  });
}

static constexpr char kReportFooter[] = R"(
Examples:
  horus shadow --cluster cluster.yaml --jobs jobs.yaml --log decisions.csv --json > shadow.json
  horus report shadow.json -o page.html --gpu-hour-price 2.5

Of results of `horus compare`, timelines and traces it is a Python program: docs/python.md.)";

Command AddReport(CLI::App& parser) {
  auto paths = std::make_shared<std::vector<std::string>>();
  auto options = std::make_shared<PageOptions>();
  CLI::App* app = parser.add_subcommand("report", "What shadow, place and potential found, as one page for people");
  AddOption(*app, "FILES", *paths, "JSON of shadow, place and potential", "FILE")->required();
  AddOption(*app, "-o,--out", options->path, "The page", "FILE")->required();
  AddPrice(*app, *options);
  app->footer(kReportFooter);
  return {app, [paths, options] { return Print(Report(*paths, *options)); }};
}

}  // namespace horus::cli
