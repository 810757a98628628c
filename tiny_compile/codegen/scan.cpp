// How does one thread scan a row in the contract's order, for any operator? Elements of a group of
// 16 are combined one after the other; what stands before the group is combined last, so that
// groups wait for each other only in what stands before them:
//
//   scan y[i0*40 + j0] for (j0: 40) = cumsum load x[i0*40 + j0]
// =>
//   for (long long from = 0; from < 32; from += 16) {
//     float within = -0.0f;
//     for (int k = 0; k < 16; k++) { within = within + x[..]; y[..] = before + within; }
//     before = tc_next(groups, within);
//   }
//   the same for the last 8
//
// tc_next combines totals of groups, of groups of 16 groups, ...: a few numbers a row, whatever
// its length.
#include "tiny_compile/codegen/scan.h"

#include <algorithm>
#include <set>

#include "tiny_compile/graph/scan.h"

namespace tiny_compile {
namespace {

constexpr const char* kLatest = R"(
// A value and where it stands; of two the greater (the lesser), and of equals the later. NaN beats
// all. No place: nothing yet.
template <class T, class Place>
struct tc_latest {
  T value;
  Place index;
};

template <bool Max, class T>
TC_FN bool tc_beats(T now, T value) {
  const bool reaches = Max ? value >= now : value <= now;
  return value != value || (now == now && reaches);
}

template <bool Max, class T, class Place>
TC_FN tc_latest<T, Place> tc_later(tc_latest<T, Place> a, tc_latest<T, Place> b) {
  return b.index >= 0 && tc_beats<Max>(a.value, b.value) ? b : a;
}
)";

// sums[k]: of the totals of level k in the group of 16 at hand; above[k]: what stands before it.
constexpr const char* kGroups = R"(
template <class Op, int Levels>
struct tc_groups {
  typename Op::T sums[Levels], above[Levels];
  unsigned long long done;
};

template <class Op, int Levels>
TC_FN void tc_begin(tc_groups<Op, Levels>& groups, typename Op::T before) {
  TC_UNROLL
  for (int k = 0; k < Levels; k++) {
    groups.sums[k] = Op::identity();
    groups.above[k] = before;
  }
  groups.done = 0;
}

// A group is over: what stands before the next one.
template <class Op, int Levels>
TC_FN typename Op::T tc_next(tc_groups<Op, Levels>& groups, typename Op::T total) {
  const unsigned long long done = ++groups.done;
  bool over = true;
  TC_UNROLL
  for (int k = 0; k < Levels; k++) {
    if (!over) break;
    total = Op::of(groups.sums[k], total);
    over = k + 1 < Levels && (done & ((16ull << 4 * k) - 1)) == 0;
    groups.sums[k] = over ? Op::identity() : total;
  }
  TC_UNROLL
  for (int k = Levels - 2; k >= 0; k--) {
    if ((done & ((16ull << 4 * k) - 1)) == 0)
      groups.above[k] = Op::of(groups.above[k + 1], groups.sums[k + 1]);
  }
  return Op::of(groups.above[0], groups.sums[0]);
}

// The total of the row, whose last group's so far is `within`.
template <class Op, int Levels>
TC_FN typename Op::T tc_total(const tc_groups<Op, Levels>& groups, typename Op::T within) {
  TC_UNROLL
  for (int k = 0; k < Levels; k++) within = Op::of(groups.sums[k], within);
  return within;
}
)";

constexpr const char* kUnroll = R"(
// Scans:
#ifdef __CUDACC__
#define TC_UNROLL _Pragma("unroll")
#else
#define TC_UNROLL _Pragma("GCC unroll 16")
#endif
)";

std::string op_struct(Calls& calls, const ScanText& scan, Op op, DType type) {
  std::string start = literal_text(calls, identity(op, type)), both;
  const char* max = op == Op::cummax ? "true" : "false";
  if (combiner(op))
    both = fill_formula(calls, formula(*combiner(op), type), {"a", "b"});
  else if (scan.places)
    both = str("tc_later<", max, ">(a, b)");
  else
    both = str("tc_beats<", max, ">(a, b) ? b : a");
  if (scan.places) start = str("{", start, ", -1}");
  const std::string state =
      scan.places ? str("tc_latest<", c_type(type), ", Place>") : scan.type;
  return str("\n", scan.places ? "template <class Place>\n" : "", "struct ", scan.name,
             " {\n  using T = ", state, ";\n  TC_FN T identity() { return ", start,
             "; }\n  TC_FN T of(T a, T b) { return ", both, "; }\n};\n");
}

}  // namespace

ScanText::ScanText(const Kernel& kernel, const Step& step, const std::string& place) {
  const DType from = compute_type(kernel.scalars[step.value].dtype);
  std::string type_name = c_type(from);
  std::replace(type_name.begin(), type_name.end(), ' ', '_');
  places = gives_places(step);
  const bool values = !places && !combiner(step.op);
  name = str("tc_", info(step.op).name, values ? "_values_" : "_", type_name);
  op = places ? str(name, "<", place, ">") : name;
  type = places ? str("tc_latest<", c_type(from), ", ", place, ">") : c_type(from);
  levels = scan_levels(inner_count(kernel, step).bounds().high);
}

std::string ScanText::of(const std::string& a, const std::string& b) const {
  return str(op, "::of(", a, ", ", b, ")");
}

std::string ScanText::lifted(const std::string& value, const std::string& e) const {
  return places ? str(type, "{", value, ", ", e, "}") : value;
}

std::string ScanText::result(const std::string& value) const {
  return places ? value + ".index" : value;
}

std::string ScanText::groups() const { return str("tc_groups<", op, ", ", levels, ">"); }

std::string scan_helpers(const std::vector<const Kernel*>& kernels, Calls& calls) {
  std::set<std::string> written;
  std::string ops;
  bool compares = false;
  for (const Kernel* kernel : kernels) {
    for (const Step& step : kernel->steps) {
      if (!is_scan(step)) continue;
      const ScanText scan(*kernel, step);
      const DType type = compute_type(kernel->scalars[step.value].dtype);
      if (written.insert(scan.name).second) ops += op_struct(calls, scan, step.op, type);
      compares = compares || !combiner(step.op);
    }
  }
  if (ops.empty()) return "";
  return str(kUnroll, compares ? kLatest : "", ops, kGroups);
}

std::string scan_helpers(const std::vector<Program>& programs, Calls& calls) {
  std::vector<const Kernel*> kernels;
  for (const Program& program : programs)
    for (const Kernel& kernel : program.kernels) kernels.push_back(&kernel);
  return scan_helpers(kernels, calls);
}

void write_scan_row(KernelText& text, const Step& step, int number, const std::string& place,
                    const std::vector<bool>& defined) {
  const ScanText scan(text.kernel, step);
  const Expr count = inner_count(text.kernel, step), whole = count - mod(count, kGroup);
  const std::string nothing = scan.op + "::identity()";
  const std::vector<int> ids = text.needed({&step});
  Text& out = text.out;
  out.open("");
  out.line(str(scan.type, " within = ", nothing, ", before = ",
               step.other < 0 || makes_register(step) ? nothing : text.scalars.name(step.other),
               ";"));
  out.line(str(scan.groups(), " groups;"));
  out.line("tc_begin(groups, before);");
  const auto element = [&] {
    std::vector<bool> here = defined;
    text.unpack_inner(step, "e");
    text.define(ids, element_scope(text.kernel, step.inner), here);
    const std::string next = scan.of("within", scan.lifted(text.scalars.name(step.value), "e"));
    if (!step.exclusive) out.line(str("within = ", next, ";"));
    if (!makes_register(step))
      out.line(str(
          step.mask < 0 ? "" : str("if (", text.scalars.name(step.mask), ") "), place, " = ",
          to_storage(text.calls, step.dtype, scan.result(scan.of("before", "within"))), ";"));
    if (step.exclusive) out.line(str("within = ", next, ";"));
  };
  if (whole.bounds().high > 0) {
    out.open(str("for (", text.integer, " from = 0; from < ", c_text(whole), "; from += 16)"));
    out.line("TC_UNROLL");
    out.open("for (int k = 0; k < 16; k++)");
    text.declare("e", "from + k");
    element();
    out.close();
    out.line("before = tc_next(groups, within);");
    out.line(str("within = ", nothing, ";"));
    out.close();
  }
  if (whole != count) {
    out.open(
        str("for (", text.integer, " e = ", c_text(whole), "; e < ", c_text(count), "; e++)"));
    element();
    out.close();
  }
  if (makes_register(step)) out.line(str("r", number, " = tc_total(groups, within);"));
  out.close();
}

}  // namespace tiny_compile
