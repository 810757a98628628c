// Which schedule is the fastest on this machine? schedule/search.h names two dozen, and the clock
// one of them:
//
//   kernel  --kernel_alone-->  a Program of it  --remembered?-->  the schedule that won before
//                                               --candidates, build, race-->  the one that wins now
//
// No schedule changes a bit, so a search can only cost time; results are compared all the same
// (tune_reference.h). Where products are left to a vendor's library, its algorithms race the generated
// tiles; its results must lie within tolerance_of(...), the tiles' have the bits.
#include "tiny_compile/compile/tune.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "tiny_compile/compile/race.h"
#include "tiny_compile/compile/tune_memory.h"
#include "tiny_compile/compile/tune_reference.h"
#include "tiny_compile/runtime/log.h"
#include "tiny_compile/schedule/cost.h"
#include "tiny_compile/schedule/search.h"
#include "tiny_compile/tile/lower.h"

namespace tiny_compile {
namespace {

constexpr double kLeastSeconds = 0.3;  // of a kernel that is tuned at all
constexpr double kBuilding = 0.7;      // of a kernel's time, the rest is for the race

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string times(double gain) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", gain);
  return text;
}

// A candidate, built.
struct Entrant {
  Schedule schedule;
  Racer racer;
};

// As many candidates as can be built by then; what has the text of one before it is that one.
std::vector<Entrant> entrants(Program alone, Device device, const TuneOptions& options,
                              double stop) {
  std::vector<Entrant> built;
  std::set<std::string> texts;
  for (const Schedule& schedule : candidates(alone, alone.kernels[0], options.most)) {
    if (built.size() > 1 && now() > stop) break;
    alone.kernels[0].schedule = schedule;
    try {
      const Source source = emit(lower_to_tiles(alone));
      const auto& entry = source.kernels[0];
      if (!texts.insert(str(source.text, entry.grid, " ", entry.block, " ", entry.grain))
               .second)
        continue;
      const double tolerance = entry.library ? tolerance_of(*entry.library) : 0;
      built.push_back({schedule, {options.builder(alone, source, device.index), tolerance}});
    } catch (const Error&) {
      if (built.empty()) throw;  // more registers than there are, say: no candidate
    }
  }
  return built;
}

std::vector<Tensor> inputs_of(const Program& alone, Device device) {
  std::vector<Type> types;
  for (const Buffer& buffer : alone.buffers) {
    if (buffer.role == Role::Input) types.push_back(buffer.type);
  }
  return inputs_for(types, device);
}

void run_race(TunedKernel& kernel, const Program& alone, Device device,
              const TuneOptions& options, double seconds) {
  const std::vector<Entrant> in = entrants(alone, device, options, now() + seconds * kBuilding);
  std::vector<Racer> racers;
  for (const Entrant& entrant : in) racers.push_back(entrant.racer);
  const std::vector<Tensor> inputs = inputs_of(alone, device);
  const Reference reference = reference_for(alone, inputs, racers[0].built);
  const Race result = race(racers, inputs, reference.results, seconds * (1 - kBuilding));
  kernel.after = in[result.winner].schedule;
  kernel.gain = result.gain;
  kernel.tried = in.size();
  kernel.whose = reference.whose;
  for (const size_t k : result.disproved) kernel.disproved.push_back(in[k].schedule);
}

TunedKernel tune_kernel(const Program& program, const Kernel& kernel, Device device,
                        const TuneOptions& options, double seconds) {
  const Schedule own = schedule_of(kernel);
  TunedKernel tuned{.name = kernel.name, .before = own, .after = own};
  std::optional<Program> alone = kernel_alone(program, kernel);
  if (!alone) {
    tuned.note = "its sizes are no numbers, or it writes what it reads, or with gaps";
    return tuned;
  }
  alone->kernels[0].schedule = own;
  const std::string key = tune_key(*alone, device);
  if (const auto known = remembered_schedule(options.directory, key, *alone)) {
    tuned.after = *known;
    tuned.note = "remembered";
    return tuned;
  }
  if (seconds <= 0) {
    tuned.note = "no time was left for it";
    return tuned;
  }
  run_race(tuned, *alone, device, options, seconds);
  if (tuned.disproved.empty()) remember_schedule(options.directory, key, *alone, tuned.after);
  return tuned;
}

// A kernel that fails when it is run by itself, where numbers drawn for it are no indices, say.
TunedKernel tune_or_leave(const Program& program, const Kernel& kernel, Device device,
                          const TuneOptions& options, double seconds) {
  try {
    return tune_kernel(program, kernel, device, options, seconds);
  } catch (const Error& error) {
    const Schedule own = schedule_of(kernel);
    return {.name = kernel.name,
            .before = own,
            .after = own,
            .note = std::string("alone it fails: ") + error.what()};
  }
}

struct Costly {
  size_t kernel = 0;
  double microseconds = 1;
};

// By the model: what takes longest is worth most of the time.
std::vector<Costly> costliest_first(const Program& program) {
  std::vector<Costly> order;
  const bool numbers = sizes(program).empty();
  for (size_t k = 0; k < program.kernels.size(); k++)
    order.push_back({k, numbers ? estimate(program, program.kernels[k]).total() : 1});
  std::stable_sort(order.begin(), order.end(), [](const Costly& a, const Costly& b) {
    return a.microseconds > b.microseconds;
  });
  return order;
}

}  // namespace

std::string TunedKernel::str() const {
  if (tried == 0 && before == after)
    return name + ": " + tiny_compile::str(after) + (note.empty() ? "" : ", " + note);
  if (tried == 0) return name + ": " + tiny_compile::str(after) + ", " + note;
  std::string text = name + ": " + tiny_compile::str(after);
  if (!(before == after))
    text += ", " + times(gain) + " times as fast as " + tiny_compile::str(before);
  text += tried == 1 ? ", the only candidate" : tiny_compile::str(", the fastest of ", tried);
  text += " with " + whose + " bits";
  return disproved.empty() ? text
                           : text + tiny_compile::str("; OTHER BITS from ", disproved.size());
}

std::string other_bits(const std::vector<TunedKernel>& kernels) {
  std::string text;
  for (const TunedKernel& kernel : kernels) {
    for (const Schedule& schedule : kernel.disproved)
      text += str("kernel ", kernel.name, " under schedule ", str(schedule),
                  " has other bits than ", kernel.whose, "\n");
  }
  return text.empty() ? "" : text + "No schedule may change a bit: this is a bug, report it";
}

Tuned tune(const Program& program, Device device, const TuneOptions& options) {
  Tuned result{program, std::vector<TunedKernel>(program.kernels.size())};
  const double stop = now() + options.seconds;
  const std::vector<Costly> order = costliest_first(program);
  double left = 0;
  for (const Costly& one : order) left += one.microseconds;
  for (const Costly& one : order) {
    Kernel& kernel = result.program.kernels[one.kernel];
    if (options.say) options.say("tuning " + kernel.name);
    const double share = std::max((stop - now()) * one.microseconds / left, kLeastSeconds);
    result.kernels[one.kernel] =
        tune_or_leave(program, kernel, device, options, now() < stop ? share : 0);
    kernel.schedule = result.kernels[one.kernel].after;
    log("autotune", result.kernels[one.kernel].str());
    left -= one.microseconds;
  }
  if (options.say) options.say("");
  return result;
}

Pipeline with_tuning(Pipeline pipeline, Device device, const TuneOptions& options) {
  const bool schedules = std::any_of(pipeline.begin(), pipeline.end(), [](const Stage& stage) {
    return stage.name == "schedule";
  });
  if (!schedules) return pipeline;
  const auto pass = [device, options](const Program& program) {
    return tune(program, device, options).program;
  };
  return insert_after(std::move(pipeline), "schedule", {"tune", ProgramPass(pass)});
}

std::function<void(const std::string&)> progress_on_terminal() {
  if (!isatty(STDERR_FILENO)) return {};
  return [](const std::string& line) { std::fprintf(stderr, "\r%s\x1b[K", line.c_str()); };
}

}  // namespace tiny_compile
