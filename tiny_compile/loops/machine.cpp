// Which machines are there by name, and how does any other read?
//
//   on cuda for a100                                      a preset
//   for cpu:4                                             4 cores of the usual CPU
//   on cuda for nvidia_l4 multiprocessors=58 threads=1536 registers=65536 ...
//
// Invariant: parse_machine(str(m)) == m.
#include "tiny_compile/loops/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr int64_t kKilo = 1 << 10, kMega = 1 << 20;
constexpr int64_t kMostCores = 4096;
constexpr int64_t kFewestBlocks = 16;
constexpr int64_t kWorkOfByte = 1024;  // of a vector: operations while work is handed over
constexpr const char* kPresets = "h200, h100, a100, rtx4090 and cpu:N, of N cores";

struct Field {
  const char* name;
  int64_t Machine::*value;
};
constexpr std::array<Field, 16> kFields = {{{"multiprocessors", &Machine::multiprocessors},
                                            {"threads", &Machine::threads},
                                            {"registers", &Machine::registers},
                                            {"blocks", &Machine::blocks},
                                            {"thread_registers", &Machine::thread_registers},
                                            {"block_shared", &Machine::block_shared},
                                            {"shared", &Machine::shared},
                                            {"cluster", &Machine::cluster},
                                            {"bandwidth", &Machine::bandwidth},
                                            {"clock", &Machine::clock},
                                            {"products", &Machine::products},
                                            {"cores", &Machine::cores},
                                            {"vector", &Machine::vector},
                                            {"l1", &Machine::l1},
                                            {"l3", &Machine::l3},
                                            {"l2", &Machine::l2}}};

// NVIDIA's data sheets and the CUDA programming guide's table of compute capabilities. Clusters of 8
// blocks are those that every such GPU can run; products are those of a data sheet's dense flops.
struct Speed {
  int64_t bandwidth, clock, products;
};

Machine gpu(const char* name, int64_t multiprocessors, int64_t threads, int64_t blocks,
            int64_t shared, int64_t cluster, int64_t l2, const Speed& speed) {
  return {.name = name,
          .multiprocessors = multiprocessors,
          .threads = threads,
          .registers = 65536,
          .blocks = blocks,
          .thread_registers = 255,
          .block_shared = (shared - 1) * kKilo,
          .shared = shared * kKilo,
          .cluster = cluster,
          .bandwidth = speed.bandwidth,
          .clock = speed.clock,
          .products = speed.products,
          .l2 = l2 * kMega};
}

// A server's core with AVX2.
Machine cpu(int64_t cores) {
  return {.name = str("cpu:", cores),
          .cores = cores,
          .vector = 32,
          .l1 = 32 * kKilo,
          .l3 = 32 * kMega,
          .l2 = kMega};
}

// With what may be left out.
Machine completed(Machine machine) {
  const Machine usual = cpu(1);
  const auto fill = [](int64_t& number, int64_t otherwise) {
    if (number == 0) number = otherwise;
  };
  if (target_of(machine) == Target::Cuda) {
    fill(machine.blocks, kFewestBlocks);
  } else {
    fill(machine.vector, usual.vector);
    fill(machine.l1, usual.l1);
    fill(machine.l2, usual.l2);
  }
  return machine;
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

std::optional<Machine> preset(std::string_view name) {
  if (name == "h200") return gpu("h200", 132, 2048, 32, 228, 8, 60, {4800, 1830, 2048});
  if (name == "h100") return gpu("h100", 132, 2048, 32, 228, 8, 50, {3350, 1830, 2048});
  if (name == "a100") return gpu("a100", 108, 2048, 32, 164, 1, 40, {2040, 1410, 1024});
  if (name == "rtx4090") return gpu("rtx4090", 128, 1536, 24, 100, 1, 72, {1010, 2520, 256});
  if (!name.starts_with("cpu:")) return std::nullopt;
  const std::optional<int64_t> cores = number_of(name.substr(4));
  if (!cores || *cores < 1 || *cores > kMostCores || str(*cores) != name.substr(4))
    return std::nullopt;
  return cpu(*cores);
}

void set_field(Machine& machine, const std::string& word) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string name = word.substr(0, equals);
  const auto field = std::find_if(kFields.begin(), kFields.end(),
                                  [&](const Field& known) { return name == known.name; });
  if (field == kFields.end()) fail("a machine has no '", name, "'");
  const auto number =
      number_of(std::string_view(word).substr(std::min(equals + 1, word.size())));
  if (!number || *number > int64_t{1} << 40)
    fail("machine: ", word, " is no number up to 2^40");
  machine.*field->value = *number;
}

// What every GPU from sm_80 on has, and every CPU.
std::string why_no_machine(const Machine& m) {
  if (m.multiprocessors == 0 && m.cores == 0)
    return "neither a GPU's multiprocessors nor a CPU's cores";
  if (m.multiprocessors == 0)
    return m.vector == 16 || m.vector == 32 || m.vector == 64 ? "" : "vector: 16, 32 or 64";
  if (m.cores > 0) return "both multiprocessors and cores";
  if (m.threads < 1024 || m.threads > 1 << 16) return "threads: 1024 to 65536";
  if (m.registers < 65536) return "registers: 65536 at least";
  if (m.blocks < kFewestBlocks) return str("blocks: ", kFewestBlocks, " at least");
  if (m.block_shared < 48 * kKilo || m.block_shared > kMega)
    return "block_shared: 48 kB to 1 MB";
  return m.cluster >= 1 && m.cluster <= 16 ? "" : "cluster: 1 to 16";
}

int64_t asked(int what) { return std::max<int64_t>(sysconf(what), 0); }

}  // namespace

Machine default_machine(Target target) {
  static const Machine machines[] = {*preset("cpu:16"), *preset("h200")};
  return machines[target == Target::Cuda];
}

Machine this_cpu() {
  return as_preset(completed({.name = "this_cpu",
                              .cores = std::max<int64_t>(asked(_SC_NPROCESSORS_ONLN), 1),
                              .vector = __builtin_cpu_supports("avx512f") ? 64
                                        : __builtin_cpu_supports("avx2")  ? 32
                                                                          : 16,
                              .l1 = asked(_SC_LEVEL1_DCACHE_SIZE),
                              .l3 = asked(_SC_LEVEL3_CACHE_SIZE),
                              .l2 = asked(_SC_LEVEL2_CACHE_SIZE)}));
}

Machine as_preset(Machine machine) {
  for (const std::string& name : {std::string("h200"), std::string("h100"), std::string("a100"),
                                  std::string("rtx4090"), str("cpu:", machine.cores)}) {
    std::optional<Machine> same = preset(name);
    if (!same) continue;
    same->name = machine.name;
    same->bandwidth = machine.bandwidth, same->clock = machine.clock;
    same->products = machine.products;
    if (*same == machine) return *preset(name);
  }
  return machine;
}

std::string str(const Machine& machine) {
  if (preset(machine.name) == machine) return machine.name;
  std::string text = machine.name;
  for (const Field& field : kFields) {
    if (machine.*field.value != 0) text += str(" ", field.name, "=", machine.*field.value);
  }
  return text;
}

Machine parse_machine(std::string_view text) {
  std::istringstream words{std::string(text)};
  Machine machine;
  words >> machine.name;
  std::string word;
  if (!(words >> word)) {
    if (const std::optional<Machine> known = preset(machine.name)) return *known;
    fail("no machine '", machine.name, "': there are ", kPresets);
  }
  do set_field(machine, word);
  while (words >> word);
  machine = completed(std::move(machine));
  const std::string reason = why_no_machine(machine);
  if (!reason.empty()) fail("machine ", machine.name, ": ", reason);
  return machine;
}

int64_t blocks_to_fill(const Machine& machine) {
  return std::max<int64_t>(1, machine.multiprocessors * 32 / 33);
}

int64_t blocks_ahead(const Machine& machine) { return blocks_to_fill(machine) * 3 / 8; }

int64_t threads_to_fill(const Machine& machine) {
  return std::max<int64_t>(1, machine.multiprocessors * machine.threads * 32 / 33);
}

int64_t rows_to_fill(const Machine& machine) {
  return target_of(machine) == Target::Cuda ? 4 * blocks_to_fill(machine) : 32 * machine.cores;
}

int64_t work_of_thread(const Machine& machine) { return kWorkOfByte * machine.vector; }

int64_t blocks_held(const Machine& machine, int64_t threads, int64_t registers) {
  const int64_t held =
      std::min(machine.threads / threads, machine.registers / (threads * registers));
  return std::clamp<int64_t>(held, 1, machine.blocks);
}

int64_t shared_of_each(const Machine& machine, int64_t blocks) {
  constexpr int64_t kUnit = 4 * kKilo;
  const int64_t all = std::max(machine.shared, machine.block_shared + kKilo);
  return std::max((all / blocks - kKilo) / kUnit * kUnit, kKilo);
}

int64_t near_bytes(const Machine& machine) {
  return machine.l2 + std::min(machine.l2, machine.l3 / machine.cores);
}

}  // namespace tiny_compile
