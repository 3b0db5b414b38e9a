// SPDX-License-Identifier: Apache-2.0
// horus profile, horus profile --sensitivity, horus report on results of compare: Python programs. This process becomes
// the interpreter, with the same arguments; nothing of them is parsed here.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "CLI/CLI.hpp"
#include "base/python_package.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/report.h"

namespace horus::cli {
namespace {

constexpr char kInterpreterVariable[] = "HORUS_PYTHON", kDefaultInterpreter[] = "python3";
constexpr char kCommandVariable[] = "HORUS_COMMAND";  // this very command, for programs that call it
constexpr char kProfiler[] = "horus-profile";
// From the folder of this command: where both are installed, and in a build, whose link leads to the sources.
constexpr std::array<const char*, 2> kProfilerFolders = {HORUS_PROFILE_FROM_BIN, "../share/horus/profile"};
// Programs of the Python package, by what is asked for.
struct Module {
  const char* command;
  const char* name;
  const char* extra;  // of the package (base/python_package.h)
};
constexpr Module kReport = {"report", "horus.report", "report"};
constexpr Module kInputs = {"profile --sensitivity", "horus.profile", ""};
constexpr int kNotImportable = 3;
constexpr char kIsImportable[] =
    "import importlib.util as u, sys\nsys.exit(0 if u.find_spec('horus') and u.find_spec(sys.argv[1]) else 3)";

std::string Interpreter() {
  const char* const chosen = std::getenv(kInterpreterVariable);
  return chosen != nullptr && *chosen != '\0' ? chosen : kDefaultInterpreter;
}

absl::Status CannotRun(const std::string& interpreter, int error) {
  return InvalidArgument("%s: cannot run the Python interpreter %s: %s; expected one on the PATH or named by %s",
                         interpreter == kDefaultInterpreter ? "PATH" : kInterpreterVariable, Quoted(interpreter),
                         std::strerror(error), kInterpreterVariable);
}

std::vector<char*> Pointers(std::vector<std::string>& line) {
  std::vector<char*> pointers;
  for (std::string& part : line) pointers.push_back(part.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Returns only if that fails.
absl::Status Become(std::vector<std::string> line) {
  execvp(line.front().c_str(), Pointers(line).data());
  return CannotRun(line.front(), errno);
}

// The exit status of a program that says nothing; 128 and more where a signal ended it.
absl::StatusOr<int> StatusOf(std::vector<std::string> line) {
  posix_spawn_file_actions_t silent;
  posix_spawn_file_actions_init(&silent);
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&silent, descriptor, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, line.front().c_str(), &silent, nullptr, Pointers(line).data(), environ);
  posix_spawn_file_actions_destroy(&silent);
  if (error != 0) return CannotRun(line.front(), error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return CannotRun(line.front(), errno);
  }
  constexpr int kSignalled = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

absl::Status Profile(std::vector<std::string> arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string looked;
  for (const char* const folder : kProfilerFolders) {
    const std::string program = (self.parent_path() / folder / kProfiler).lexically_normal().string();
    if (std::filesystem::exists(program, error)) {
      setenv(kCommandVariable, self.c_str(), 0);
      arguments.insert(arguments.begin(), {Interpreter(), program});
      return Become(std::move(arguments));
    }
    if (looked.find(Quoted(program)) == std::string::npos) looked += (looked.empty() ? "" : " and ") + Quoted(program);
  }
  return InvalidArgument(
      "profile: expected the profiler beside this command, looked for %s; it is bench/profile of the sources", looked);
}

absl::Status BecomeModule(const Module& module, std::vector<std::string> arguments) {
  const std::string interpreter = Interpreter();
  HORUS_ASSIGN_OR_RETURN(const int found, StatusOf({interpreter, "-c", kIsImportable, module.name}));
  if (found == kNotImportable) {
    return InvalidArgument(
        "%s: the Python package is not installed for %s (no module %s): %s -m %s; or name another interpreter by %s",
        module.command, Quoted(interpreter), module.name, interpreter, InstallPythonPackage(module.extra),
        kInterpreterVariable);
  }
  arguments.insert(arguments.begin(), {interpreter, "-m", module.name});
  return Become(std::move(arguments));
}

bool IsAnyForPython(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_output = i > 0 && (arguments[i - 1] == "-o" || arguments[i - 1] == "--out");
    if (!is_output && IsForPython(arguments[i])) return true;
  }
  return false;
}

}  // namespace

void AddHandOvers(CLI::App& parser) {
  parser.add_subcommand("profile", "Measure one's own GPU and train on it (a Python program: docs/measure.md)");
}

std::optional<int> HandOver(int argc, const char* const* argv) {
  if (argc < 2) return std::nullopt;
  const std::string_view command = argv[1];
  if (command == "profile" && argc > 2 && std::string_view(argv[2]) == "--sensitivity")
    return Fail(BecomeModule(kInputs, {argv + 3, argv + argc}));
  if (command == "profile") return Fail(Profile({argv + 2, argv + argc}));
  if (command == "report" && IsAnyForPython({argv + 2, argv + argc}))
    return Fail(BecomeModule(kReport, {argv + 2, argv + argc}));
  return std::nullopt;
}

}  // namespace horus::cli
