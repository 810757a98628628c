// How does one thread add thousands of updates chunk by chunk? The first chunk's go to memory at
// once. A later chunk's are added up apart first, a sum for each target that it meets: at most 1024,
// found by hashing, so that room does not grow with the targets:
//
//   scatter y[at0; at0 = load k[j0] < 50257] for (j0: 8192) = scatter_add load d[j0]
// =>
//   for (from = 1024; from < 8192; from += 1024) {
//     for (e = from; e < from + 1024; e++) part[tc_slot(slots, k[e])] += d[e];
//     for (s = 0; s < slots.count; s++) y[slots.target[s]] += part[s];
//   }
//
// Columns that share their targets are lanes of part, 64 at a time.
#include "tiny_compile/codegen/cpp_scatter.h"

#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/graph/scan.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLanesAtOnce = 64;

constexpr const char* kSlots = R"(
// The targets of a chunk, each once, and a table of twice as many places that finds them.
struct tc_slots {
  int count;
  long long target[1024];
  short table[2048];
};

TC_FN void tc_clear(tc_slots& slots) {
  slots.count = 0;
  for (int h = 0; h < 2048; h++) slots.table[h] = -1;
}

TC_FN int tc_slot(tc_slots& slots, long long target) {
  unsigned h = (unsigned)((unsigned long long)target * 0x9E3779B97F4A7C15ull >> 53);
  for (; slots.table[h] >= 0; h = (h + 1) & 2047)
    if (slots.target[slots.table[h]] == target) return slots.table[h];
  slots.table[h] = (short)slots.count;
  slots.target[slots.count] = target;
  return slots.count++;
}
)";

class ChunkWriter {
 public:
  ChunkWriter(KernelText& text, const Step& step, int lane, const std::vector<bool>& defined)
      : text_(text), out_(text.out), step_(step), lane_(lane), defined_(defined) {
    count_ = c_operand(inner_count(text.kernel, step));
    place_ = str(pointer_name(text.program.buffers[step.buffer]), "[",
                 text.scalars.index(step.index), "]");
    value_ = text.scalars.name(step.value);
  }

  void write() {
    const int64_t lanes = lane_ < 0 ? 1 : kLanesAtOnce;
    out_.open("");
    out_.line("tc_slots slots;");
    out_.line(
        str("alignas(64) ", value_type(step_.dtype), " part[", kChunk, "][", lanes, "];"));
    out_.open(str("for (long long from = 0; from < ", count_, "; from += ", kChunk, ")"));
    out_.line(str("const long long to = from + ", kChunk, " < ", count_, " ? from + ", kChunk,
                  " : ", count_, ";"));
    if (lane_ >= 0) {
      out_.open(str("for (long long l0 = 0; l0 < width; l0 += ", kLanesAtOnce, ")"));
      out_.line(str("const long long lanes = width - l0 < ", kLanesAtOnce,
                    " ? width - l0 : ", kLanesAtOnce, ";"));
    }
    out_.open("if (from == 0)");
    write_updates([&](const auto& each) { each(updated(text_.calls, step_, place_, value_)); });
    out_.close(" else {");
    out_.indent();
    write_parts();
    out_.close();
    for (int k = lane_ >= 0 ? 3 : 2; k > 0; k--) out_.close();
  }

 private:
  // for each update that has a target: body(each), each(line) writing a line for all lanes.
  template <typename Body>
  void write_updates(Body body) {
    const std::vector<int> ids = text_.needed({&step_});
    const LoopScope all = element_scope(text_.kernel, step_.inner);
    LoopScope shared = all;
    if (lane_ >= 0) shared.axes &= ~(uint64_t{1} << lane_);
    std::vector<bool> here = defined_;
    out_.open("for (long long e = from; e < to; e++)");
    text_.unpack_inner(step_, "e");
    text_.define(ids, shared, here);
    const std::string mask = step_.mask < 0 ? "" : text_.scalars.name(step_.mask) + " && ";
    const std::string other = text_.scalars.name(step_.other);
    out_.line(str("if (!(", mask, text_.calls("tc_in_range"), "(", other, ", ",
                  c_text(step_.limit), "))) continue;"));
    out_.line(str("const long long at0 = ", other, ";"));
    body([&](const std::string& line) {
      open_lanes();
      std::vector<bool> inside = here;
      text_.define(ids, all, inside);
      out_.line(line);
      close_lanes();
    });
    out_.close();
  }

  void open_lanes() {
    if (lane_ < 0) return;
    out_.line("#pragma GCC ivdep");
    out_.open("for (long long l = l0; l < l0 + lanes; l++)");
    text_.declare(text_.kernel.axes[lane_].name, "start + l");
  }
  void close_lanes() {
    if (lane_ >= 0) out_.close();
  }

  void write_parts() {
    const std::string part = lane_ < 0 ? "part[slot][0]" : "part[slot][l - l0]";
    const std::string nothing =
        literal_text(text_.calls, identity(step_.op, compute_type(step_.dtype)));
    out_.line("tc_clear(slots);");
    write_updates([&](const auto& each) {
      out_.line("const int known = slots.count, slot = tc_slot(slots, at0);");
      out_.line(str("if (slot == known) for (long long n = 0; n < ", lane_ < 0 ? "1" : "lanes",
                    "; n++) part[slot][n] = ", nothing, ";"));
      each(str(part, " = ", updated_value(text_.calls, step_, part, value_), ";"));
    });
    out_.open("for (int slot = 0; slot < slots.count; slot++)");
    out_.line("const long long at0 = slots.target[slot];");
    open_lanes();
    out_.line(updated(text_.calls, step_, place_, part));
    close_lanes();
    out_.close();
  }

  KernelText& text_;
  Text& out_;
  const Step& step_;
  const int lane_;  // the axis of the columns, -1 for a row
  const std::vector<bool>& defined_;
  std::string count_, place_, value_;
};

}  // namespace

bool has_chunks(const Kernel& kernel, const Step& step) {
  return step.kind == StepKind::Scatter && scatters_in_chunks(step.op, step.dtype) &&
         inner_count(kernel, step).bounds().high > kChunk;
}

bool chooses_by_column(const KernelText& text) {
  const uint64_t lane = uint64_t{1} << (text.kernel.rows - 1);
  for (const Step& step : text.kernel.steps) {
    if (!has_chunks(text.kernel, step)) continue;
    for (int id : {step.other, step.mask}) {
      if (id >= 0 && (text.needs(id).axes & lane) != 0) return true;
      if (id >= 0 && text.needs(id).registers) return true;
    }
  }
  return false;
}

void write_scatter_chunks(KernelText& text, const Step& step, int lane,
                          const std::vector<bool>& defined) {
  ChunkWriter(text, step, lane, defined).write();
}

std::string scatter_helpers(const std::vector<Program>& programs) {
  for (const Program& program : programs) {
    for (const Kernel& kernel : program.kernels) {
      for (const Step& step : kernel.steps) {
        if (has_chunks(kernel, step)) return kSlots;
      }
    }
  }
  return "";
}

}  // namespace tiny_compile
