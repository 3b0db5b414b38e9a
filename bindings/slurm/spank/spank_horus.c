/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 *
 * Options of sbatch, srun and salloc for the words of docs/slurm.md: --horus-model net.onnx --horus-batch 64. They are
 * checked here, before anything is submitted, and go to job_submit.lua, which writes them into the job's comment.
 * sbatch loads this file, and Slurm is GPL-2.0-or-later: so you may have it under that licence. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SPANK_PLUGIN(horus, 1)

enum kind { FLAG, FIGURE, COUNT, CHOICE, DIMS, MODEL, STEPS, TEXT };

/* What internal/words takes, and as it takes it: test/e2e/spank_test.go asks both. */
struct word {
  const char *key; /* of the comment; the option has '-' for '_' */
  enum kind kind;
  double least, most;
  const char *choices; /* ", " between them, in alphabetical order */
  const char *shows;   /* --help */
  const char *about;
};

#define MOST_COUNT 2147483648.0 /* batch, a size: mostBatch of internal/words */
#define MOST_MODEL_MIB 256      /* mostModel of internal/place */

static const struct word words[] = {
    {"", FLAG, 0, 0, NULL, NULL, "horus places the job, without words"},
    {"model", MODEL, 0, 0, NULL, "FILE|NAME",
     "ONNX graph of the job, config.json of a language model, or a name that horus models lists; weights are not "
     "needed"},
    {"batch", COUNT, 1, MOST_COUNT, NULL, "N", "samples of a step"},
    {"dims", DIMS, 1, MOST_COUNT, NULL, "NAME:SIZE+...", "sizes of the model's other dimensions"},
    {"mode", CHOICE, 0, 0, "inference, training", "MODE", "training or inference"},
    {"kind", CHOICE, 0, 0, "best-effort, inference, training", "KIND", "training, inference or best-effort"},
    {"precision", CHOICE, 0, 0, "amp, amp-bf16, bf16, fp16, fp32, fp32-ieee, tf32", "NAME", "such as fp32 or amp"},
    {"optimizer", CHOICE, 0, 0, "adafactor, adagrad, adam, adam-8bit, adamw, adamw-bf16, momentum, rmsprop, sgd",
     "NAME", "such as sgd or adamw"},
    {"framework", CHOICE, 0, 0, "pytorch, pytorch-1, pytorch-compiled, sglang, tensorflow, tensorrt-llm, vllm", "NAME",
     "such as pytorch"},
    {"layout", CHOICE, 0, 0, "nchw, nhwc", "LAYOUT", "of images in memory: nchw or nhwc"},
    {"checkpoint_segments", COUNT, 0, MOST_COUNT, NULL, "N", "of activation checkpointing"},
    {"weights", CHOICE, 0, 0, "bf16, fp16, fp32, fp8, int4, int8, mxfp4, nvfp4", "TYPE",
     "of a language model, where not those of its file"},
    {"cache", CHOICE, 0, 0, "bf16, fp16, fp32, fp8, int8", "TYPE", "of keys and values, likewise"},
    {"tensor_parallel", COUNT, 1, 4096, NULL, "N", "GPUs that share every layer of a language model"},
    {"requests_per_s", FIGURE, 0.001, 1e6, NULL, "X", "that a language model serves"},
    {"users", FIGURE, 1, 1e6, NULL, "X", "or those who ask again once they are answered"},
    {"tokens_in", FIGURE, 1, 16777216, NULL, "N", "of a prompt, mean"},
    {"tokens_out", FIGURE, 1, 16777216, NULL, "N", "of an answer, mean"},
    {"longest", FIGURE, 2, 33554432, NULL, "N", "tokens of the longest request, both; else 4 times the mean"},
    {"first_token_ms", FIGURE, 0.001, 1e9, NULL, "MS", "promised time to the first token"},
    {"token_ms", FIGURE, 0.001, 1e9, NULL, "MS", "promised time of each further token"},
    {"gpu_util_pct", FIGURE, 0, 100, NULL, "PCT", "instead of a model: how busy the job keeps a GPU"},
    {"gpu_memory_gib", FIGURE, 0.001, 1048576, NULL, "GIB", "instead of a model: what it takes of a GPU's memory"},
    {"mem_bw_util_pct", FIGURE, 0, 100, NULL, "PCT", "how busy it keeps a GPU's memory"},
    {"step_time_ms", FIGURE, 0.001, 1e9, NULL, "MS", "of a step, alone on a GPU"},
    {"slowdown_bound", FIGURE, 1, 1000, NULL, "X", "the slowdown by neighbours that it bears"},
    {"slowdown_confidence", FIGURE, 0.5, 0.999, NULL, "P", "how sure that bound, or promised times, shall be"},
    {"sm_cap_pct", COUNT, 1, 99, NULL, "PCT", "of a GPU's SMs that it uses at most, under MPS"},
    {"gpu_types", TEXT, 0, 0, NULL, "TYPE+...", "of GPUs that it may use"},
    {"share", CHOICE, 0, 0, "account, anyone", "WHOM", "with jobs of its account alone or of anyone"},
    {"profile", TEXT, 0, 0, NULL, "NAME", "jobs of an account that say the same do the same"},
    {"steps", STEPS, 0, 0, NULL, "WHERE", "horus or PORT[/PATH][:METRIC], where it tells its steps"},
};

enum { WORDS = sizeof words / sizeof *words };

static char *said[WORDS];      /* values; NULL = not said */
static char joined[16 * 1024]; /* as the comment has them */

/* option of a word: "horus-slowdown-bound". */
static const char *option_of(const struct word *word) {
  static char names[WORDS][40];
  char *name = names[word - words];
  snprintf(name, sizeof names[0], *word->key ? "horus-%s" : "horus%s", word->key);
  for (char *c = name; *c; ++c) {
    if (*c == '_') *c = '-';
  }
  return name;
}

static bool number_in(const char *value, double least, double most) {
  char *end = NULL;
  const double found = strtod(value, &end);
  return *value > ' ' && !*end && found >= least && found <= most;
}

static bool integer_in(const char *value, size_t size, double least, double most) {
  const size_t sign = size > 0 && (*value == '-' || *value == '+');
  char text[24];
  if (size <= sign || size >= sizeof text || strspn(value + sign, "0123456789") < size - sign) return false;
  memcpy(text, value, size);
  text[size] = '\0';
  return number_in(text, least, most);
}

static bool one_of(const char *value, const char *choices) {
  const size_t size = strlen(value);
  for (const char *at = choices; at; at = strstr(at, ", ") ? strstr(at, ", ") + 2 : NULL) {
    if (strcspn(at, ",") == size && strncmp(at, value, size) == 0) return true;
  }
  return false;
}

static bool dims_in(const struct word *word, const char *value) {
  for (;;) {
    const char *colon = value + strcspn(value, ":+");
    if (*colon != ':' || colon == value) return false;
    const size_t size = strcspn(colon + 1, "+");
    if (!integer_in(colon + 1, size, word->least, word->most)) return false;
    if (!colon[1 + size]) return true;
    value = colon + 2 + size;
  }
}

static bool steps_in(const char *value) {
  if (strcmp(value, "horus") == 0) return true;
  const size_t digits = strspn(value, "0123456789");
  const char *colon = strchr(value, ':');
  return (!value[digits] || value[digits] == '/' || value[digits] == ':') && integer_in(value, digits, 1, 65535) &&
         (!colon || colon[1]);
}

static bool ends(const char *text, const char *with) {
  const size_t size = strlen(text), end = strlen(with);
  return size >= end && strcmp(text + size - end, with) == 0;
}

/* model_in takes an absolute path, and complains by itself. */
static int model_in(const char *option, const char *path) {
  struct stat info;
  /* Opened without waiting: it may be a pipe. */
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 || fstat(file, &info) != 0) {
    slurm_error("--%s: expected a file that can be read, found %s: %s", option, path, strerror(errno));
    if (file >= 0) close(file);
    return -1;
  }
  close(file);
  if (!S_ISREG(info.st_mode)) {
    slurm_error("--%s: %s: expected a regular file", option, path);
    return -1;
  }
  if (info.st_size > (off_t)MOST_MODEL_MIB << 20) {
    slurm_error("--%s: %s: expected at most %d MiB, found %lld (weights are not needed)", option, path, MOST_MODEL_MIB,
                (long long)info.st_size >> 20);
    return -1;
  }
  return 0;
}

static bool fits(const struct word *word, const char *value) {
  switch (word->kind) {
    case FIGURE:
      return number_in(value, word->least, word->most);
    case COUNT:
      return integer_in(value, strlen(value), word->least, word->most);
    case CHOICE:
      return one_of(value, word->choices);
    case DIMS:
      return dims_in(word, value);
    case STEPS:
      return steps_in(value);
    default:
      return true;
  }
}

static void expected(const struct word *word, char *text, size_t size) {
  switch (word->kind) {
    case FIGURE:
      snprintf(text, size, "a number from %.10g to %.10g", word->least, word->most);
      return;
    case COUNT:
      snprintf(text, size, "an integer from %.0f to %.0f", word->least, word->most);
      return;
    case CHOICE:
      snprintf(text, size, "one of %s", word->choices);
      return;
    case DIMS:
      snprintf(text, size, "NAME:SIZE+…");
      return;
    default:
      snprintf(text, size, "horus or PORT[/PATH][:METRIC]");
  }
}

static int keep(int which, const char *value) {
  free(said[which]); /* of the script: the command's own counts */
  said[which] = strdup(value);
  return said[which] ? 0 : -1;
}

/* take is what Slurm calls with the value of an option. */
static int take(int which, const char *value, int remote) {
  if (remote) return 0;
  const struct word *word = &words[which];
  const char *option = option_of(word);
  char text[PATH_MAX + 256] = "";
  if (word->kind == FLAG) value = "";
  if (word->kind != FLAG && !*value) {
    slurm_error("--%s: expected a value, found none", option);
    return -1;
  }
  if (strpbrk(value, ",;") || strcspn(value, "\n\r\t") < strlen(value)) {
    slurm_error("--%s: expected neither comma, semicolon nor line feed, found \"%s\"", option, value);
    return -1;
  }
  if (!fits(word, value)) {
    expected(word, text, sizeof text);
    slurm_error("--%s: expected %s, found \"%s\"", option, text, value);
    return -1;
  }
  if (word->kind == MODEL && !strchr(value, '/') && !ends(value, ".onnx") && !ends(value, ".json")) {
    if (one_of(value, HORUS_MODELS)) return keep(which, value);
    slurm_error("--%s: expected a file (….onnx, ….json, …/…) or a name that horus models lists, found \"%s\"", option,
                value);
    return -1;
  }
  if (word->kind == MODEL && *value != '/') { /* as of the command, whatever --chdir says */
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder)) {
      slurm_error("--%s: this folder: %s", option, strerror(errno));
      return -1;
    }
    snprintf(text, sizeof text, "%s/%s", folder, value);
    value = text;
  }
  if (word->kind == MODEL && model_in(option, value) != 0) return -1;
  return keep(which, value);
}

static const char *saying(const char *key) {
  for (int i = 0; i < WORDS; ++i) {
    if (strcmp(words[i].key, key) == 0) return said[i];
  }
  return NULL;
}

/* Each of the first needs one of the second, and none of the third: rules of internal/words. */
static const char *const rules[][3] = {
    {"batch dims mode precision optimizer framework layout checkpoint_segments weights cache tensor_parallel "
     "requests_per_s users",
     "model", ""},
    {"gpu_util_pct mem_bw_util_pct step_time_ms", "gpu_memory_gib", "model"},
    {"gpu_memory_gib", "gpu_util_pct", "model"},
    {"requests_per_s users", "tokens_out", "batch dims mode"},
    {"users", "", "requests_per_s"},
    {"tokens_in", "requests_per_s users", ""},
    {"tokens_out longest first_token_ms token_ms", "tokens_in", ""},
    {"slowdown_confidence", "slowdown_bound requests_per_s users", ""},
};

/* next word of a list, as an index of words; -1 at its end. */
static int next(const char **list) {
  const size_t size = strcspn(*list += strspn(*list, " "), " ");
  for (int i = 1; size && i < WORDS; ++i) {
    if (strlen(words[i].key) == size && strncmp(words[i].key, *list, size) == 0) return *list += size, i;
  }
  return -1;
}

/* breaks says how a word breaks a rule; NULL = it does not. */
static const char *breaks(const char *const rule[3], const struct word *word) {
  static char text[256];
  size_t size = (size_t)snprintf(text, sizeof text, "--%s: expected beside ", option_of(word));
  const char *beside = rule[1], *barred = rule[2];
  for (int i; (i = next(&barred)) >= 0;) {
    if (!said[i]) continue;
    snprintf(text, sizeof text, "--%s: expected without --%s, found beside it", option_of(word), option_of(&words[i]));
    return text;
  }
  if (!*beside) return NULL;
  for (int i; (i = next(&beside)) >= 0;) {
    if (said[i]) return NULL;
    size += (size_t)snprintf(text + size, sizeof text - size, "--%s%s", option_of(&words[i]), *beside ? " or " : "");
  }
  snprintf(text + size, sizeof text - size, ", found without");
  return text;
}

/* together says what is wrong with the words as a whole; NULL = nothing. */
static const char *together(void) {
  static const char *const of_language[] = {"weights", "cache", "tensor_parallel", "tokens_in"};
  const char *wrong = NULL, *model = saying("model"), *longest = saying("longest");
  for (size_t r = 0; r < sizeof rules / sizeof *rules; ++r) {
    const char *first = rules[r][0];
    for (int i; (i = next(&first)) >= 0;) {
      if (said[i] && (wrong = breaks(rules[r], &words[i]))) return wrong;
    }
  }
  for (size_t i = 0; i < sizeof of_language / sizeof *of_language; ++i) {
    if (saying(of_language[i]) && strchr(model, '/') && !ends(model, ".json")) {
      return "--horus-model: expected a config.json or a name that horus models lists, found another model";
    }
  }
  if (!saying("tokens_in")) return NULL;
  if (saying("kind") && strcmp(saying("kind"), "inference") != 0) {
    return "--horus-kind: expected inference beside --horus-tokens-in, found another";
  }
  if (saying("framework") && !one_of(saying("framework"), "sglang, tensorrt-llm, vllm")) {
    return "--horus-framework: expected sglang, tensorrt-llm or vllm beside --horus-tokens-in, found another";
  }
  if (longest && atof(longest) < atof(saying("tokens_in")) + atof(saying("tokens_out"))) {
    return "--horus-longest: expected at least --horus-tokens-in and --horus-tokens-out, found less";
  }
  return NULL;
}

/* heard says whether a script of the controller can hear of the words; else they would be lost without a sound. */
static bool heard(void) {
  slurm_conf_t *conf = NULL;
  if (slurm_load_ctl_conf(0, &conf) != 0) return true; /* the submission says it better */
  const bool lua = conf->job_submit_plugins && strstr(conf->job_submit_plugins, "lua");
  slurm_free_ctl_conf(conf);
  return lua;
}

static bool submits(void) {
  const spank_context_t where = spank_context();
  return where == S_CTX_ALLOCATOR || where == S_CTX_LOCAL;
}

/* forget what the job around this command was submitted with, which Slurm would take for options of this one. */
static void forget(const char *option) {
  char name[96] = "";
  snprintf(name, sizeof name, "SLURM_SPANK__SLURM_SPANK_OPTION_horus_%s", option);
  for (char *c = name; *c; ++c) {
    if (*c == '-') *c = '_';
  }
  unsetenv(name);
}

int slurm_spank_init(spank_t spank, int argc, char *argv[]) {
  (void)argc, (void)argv;
  /* Nodes have nothing to do, but slurmd logs an error for an option that they do not know. */
  if (!submits() && spank_context() != S_CTX_REMOTE) return 0;
  if (submits()) unsetenv("SLURM_SPANK_HORUS_WORDS"), unsetenv("SLURM_SPANK_HORUS_SRUN");
  for (int i = 0; i < WORDS; ++i) {
    struct spank_option option = {
        (char *)option_of(&words[i]), (char *)words[i].shows, (char *)words[i].about, words[i].kind != FLAG, i, take};
    if (submits()) forget(option.name);
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
      slurm_error("--%s: expected an option that no other plugin has, found one", option.name);
    }
  }
  return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char *argv[]) {
  (void)argc, (void)argv;
  if (!submits()) return 0;
  const char *wrong = together();
  size_t size = 0;
  bool any = false;
  for (int i = 0; i < WORDS && !wrong; ++i) {
    if (!said[i]) continue;
    any = true;
    if (words[i].kind == FLAG) continue;
    size += (size_t)snprintf(joined + size, sizeof joined - size, "%s%s=%s", size ? "," : "", words[i].key, said[i]);
    if (size >= sizeof joined) wrong = "--horus-…: expected at most 16 KiB of words, found more";
  }
  if (any && !wrong && spank_context() == S_CTX_LOCAL && getenv("SLURM_JOB_ID")) {
    slurm_info("--horus-…: a step runs where its job does; say them where the job is submitted");
    return 0;
  }
  if (any && !wrong && !heard()) {
    wrong = "--horus-…: expected JobSubmitPlugins=lua with horus-slurm's job_submit.lua on the controller, found none";
  }
  if (wrong) {
    slurm_error("%s", wrong);
    exit(1); /* a status would count only where plugstack.conf says "required" */
  }
  const bool srun = spank_context() == S_CTX_LOCAL; /* its step asks for GPUs too */
  if (any && (spank_job_control_setenv(spank, "HORUS_WORDS", joined, 1) != ESPANK_SUCCESS ||
              (srun && spank_job_control_setenv(spank, "HORUS_SRUN", "1", 1) != ESPANK_SUCCESS))) {
    slurm_error("--horus-…: expected that Slurm takes the words, found that it does not");
    exit(1);
  }
  return 0;
}
