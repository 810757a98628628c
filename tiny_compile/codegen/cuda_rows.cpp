// How do the threads that share a row go over it? Each step in turn, all in the same pattern, so
// that a value kept for a later step stays in the registers of the thread that computed it:
//
//   softmax of rows of 4096, 4 warps: each its chunk of 1024
//     t = 32 loads a lane;                    part[warp] = tc_tree<max>(t);   meet; fold
//     t = exp(kept loads - maximum), kept;    part[warp] = tc_tree<sum>(t);   meet; fold
//     y = kept exp / sum
#include "tiny_compile/codegen/cuda_rows.h"

#include <algorithm>
#include <iterator>

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cuda_ahead.h"
#include "tiny_compile/codegen/cuda_fold.h"
#include "tiny_compile/codegen/cuda_row_place.h"
#include "tiny_compile/codegen/cuda_row_tree.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {
namespace {

constexpr int64_t kManyValues = 16;  // of a thread, from which on one divisor for all pays
constexpr int64_t kMostKept = 64;    // registers a thread gives to one kept value

class RowsWriter {
 public:
  RowsWriter(CudaText& text, const std::string& function)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        rows_(row_count(kernel_).constant()) {
    passes_ = passes_of(kernel_);
    private_ = stored_alone(kernel_, passes_);
    for (size_t pass = 0; pass < passes_.size(); pass++)
      text_.pass_of.insert(text_.pass_of.end(), passes_[pass].size(), static_cast<int>(pass));
    shape_ = row_shape_of(text, passes_);
    entry_ = text.begin(function, ceil_divide(rows_, shape_.rows_a_block * shape_.turns),
                        shape_.block, 1, shape_.resident);
  }

  KernelEntry write() {
    live_ = open_rows(text_, shape_);
    // Halves: there arithmetic takes as long as memory, each instruction counts. All lanes must take
    // the same branch, because they meet in it: a warp has one row.
    text_.hastens_exp = reads_halves(kernel_) && shape_.lanes == 32;
    text_.trusts_maximum = true;
    keep_values();
    std::vector<bool> defined(kernel_.scalars.size());
    const bool folds = folds_rows(kernel_);
    const auto reduces = [&](const std::vector<int>& pass) {
      return kernel_.steps[pass[0]].kind == StepKind::Reduce;
    };
    const auto reduced = std::find_if_not(passes_.begin(), passes_.end(), reduces);
    if (folds) ask_for_later_passes(text_, passes_);
    if (shape_.is_shared()) read_first(defined);
    for (const std::vector<int>& pass : passes_) {
      const std::vector<const Step*> steps = steps_of(pass);
      if (folds && &pass == &*reduced) ask_for_next_turn(text_, passes_);
      if (folds) forget_what_was_made();
      text_.define(needed_by_all(steps), {row_mask(kernel_), true}, defined);
      if (shape_.over(steps[0]->inner).values() >= kManyValues)
        text_.declare_divisors(text_.needed(steps), defined);
      if (steps[0]->kind == StepKind::Store)
        write_stores(steps, defined);
      else if (steps[0]->kind == StepKind::Fold)
        write_fold_of_rows(*steps[0], pass[0], defined);
      else if (is_arg(*steps[0]))
        write_arg(*steps[0], pass[0], defined);
      else
        write_trees(pass, defined);
      text_.mark_kept(kept_now_);
    }
    if (shape_.turns > 1) out_.close();
    out_.close();
    return entry_;
  }

 private:
  // --- passes: steps over the same loops that need not wait for each other ---

  std::vector<const Step*> steps_of(const std::vector<int>& pass) const {
    std::vector<const Step*> steps;
    for (int s : pass) steps.push_back(&kernel_.steps[s]);
    return steps;
  }

  std::vector<int> needed_by_all(const std::vector<const Step*>& steps) const {
    std::vector<int> ids = text_.needed(steps);
    std::erase_if(ids, [&](int id) { return private_[id]; });
    return ids;
  }

  // Loads whose place the row's number alone gives are on their way while its elements are, and
  // not asked for only when another load, or a step, waits for them.
  void read_first(std::vector<bool>& defined) {
    std::vector<int> ids = needed_by_all(all_steps(kernel_));
    std::erase_if(ids, [&](int id) { return !is_plain(kernel_.scalars[id]); });
    text_.define(ids, {row_mask(kernel_), false}, defined);
  }

  // Values that several steps use stay in registers, where they fit: costly ones, and of loads
  // what all these steps make of them. What all rows read (a weight) is in the caches.
  void keep_values() {
    auto worth = [&](const Scalar& s) {
      const int id = static_cast<int>(&s - kernel_.scalars.data());
      const bool loads = s.kind == ScalarKind::Load && (rows_ == 1 || is_of_row(s));
      return loads || is_costly(s) || text_.hides_its_loads(id);
    };
    const int64_t threads = shape_.warps * shape_.lanes;
    text_.choose_kept(worth, threads * kMostKept * 8);
    for (auto at = text_.planned.begin(); at != text_.planned.end();) {
      const Spread& s = shape_.over(at->second);
      const bool fits = s.rounds * s.values() <= kMostKept;
      if (fits)
        out_.line(str(value_type(kernel_.scalars[at->first].dtype), " keep_", at->first, "[",
                      s.rounds * s.values(), is_first_stored(at->first) ? "] = {};" : "];"));
      at = fits ? std::next(at) : text_.planned.erase(at);
    }
    text_.kept_place = [this](int id) {
      const Spread& s = shape_.over(text_.planned.at(id));
      const std::string round = s.rounds > 1 ? str("round * ", s.packs, " + ") : "";
      return str("keep_", id, "[(", round, "k) * ", s.vector, " + v]");
    };
  }

  // Threads without a row leave out what is stored; a place that data gives must be one to them too.
  bool is_first_stored(int id) const {
    const auto reaches = [&](const Step& step) -> bool {
      return reachable(kernel_, step)[static_cast<size_t>(id)];
    };
    const auto first = std::find_if(kernel_.steps.begin(), kernel_.steps.end(), reaches);
    return !live_.empty() && first != kernel_.steps.end() && first->kind == StepKind::Store;
  }

  // A kernel with folds has many passes: their values are made of the kept ones each time.
  void forget_what_was_made() {
    for (const auto& [id, inner] : text_.planned) {
      if (!text_.is_kept(id)) continue;
      const Spread& s = shape_.over(inner);
      out_.line("#pragma unroll");
      out_.line(str("for (int i = 0; i < ", s.rounds * s.values(), "; i++) ",
                    text_.calls("tc_anew"), "(keep_", id, "[i]);"));
    }
  }

  bool is_of_row(const Scalar& load) const {
    return load.mask >= 0 || !load.operands.empty() || depends_on_rows(kernel_, load.index);
  }

  // --- going over the elements of a row ---

  // Opens the loop over the warp's chunks.
  void open_chunks(const Spread& s) {
    out_.open("");
    if (s.rounds > 1) {
      const bool keeps = !text_.planned.empty();
      out_.line(keeps ? "#pragma unroll" : "#pragma unroll 1");
      out_.open(str("for (int round = 0; round < ", s.rounds, "; round++)"));
    }
    if (s.chunks == 1 && shape_.warps == 1) return;
    const std::string turn = s.rounds > 1 ? str(" + ", shape_.warps, " * round") : "";
    out_.line(str("const int chunk = warp", turn, ";"));
    guarded_ = s.chunks != s.rounds * shape_.warps;
    if (guarded_) out_.open(str("if (chunk < ", s.chunks, ")"));
  }

  void close_chunks(const Spread& s) {
    if (guarded_) out_.close();
    guarded_ = false;
    if (s.rounds > 1) out_.close();
    out_.close();
  }

  // for each pack k of the chunk, for each element v: body(). Whether a chunk ends with the row
  // is asked once, not at each element; and in the last one the compiler leaves out what lies
  // beyond.
  template <typename Body>
  void write_elements(const Spread& s, const std::vector<const Step*>& steps,
                      const std::vector<bool>& defined, Body body) {
    const bool partial = s.count % s.size != 0, most_are_whole = partial && s.chunks > 1;
    if (most_are_whole) {
      out_.open(str("if (1024 * chunk + 1024 <= ", s.count, ")"));
      write_packs(s, steps, defined, false, body);
      out_.close(str(" else if (chunk == ", s.chunks - 1, ") {"));
      out_.indent();
    }
    write_packs(s, steps, defined, partial, body);
    if (most_are_whole) out_.close();
    kept_now_ = text_.needed(steps);
  }

  template <typename Body>
  void write_packs(const Spread& s, const std::vector<const Step*>& steps,
                   std::vector<bool> defined, bool partial, Body body) {
    const std::vector<int> ids = text_.needed(steps);
    std::vector<const Step*> stores;
    for (const Step* step : steps) {
      if (step->kind == StepKind::Store) stores.push_back(step);
    }
    const bool ragged = partial && s.count % s.vector != 0;
    const std::string place = place_of(s);
    open_packs(s, partial);
    if (!s.inner.empty()) text_.set_vector(s.inner.back(), s.vector);
    if (ragged) text_.left = str(s.count, " - ", place);
    text_.load_packs(ids, defined);
    text_.declare_store_packs(stores);
    if (!pack_.empty()) out_.line(pack_ + " pack;");
    out_.line("#pragma unroll");
    out_.open(str("for (int v = 0; v < ", s.vector, "; v++)"));
    if (ragged) out_.open(str("if (", place, " + v < ", s.count, ")"));
    if (!s.inner.empty()) text_.declare(kernel_.axes[s.inner.back()].name, "e + v");
    text_.define(ids, element_scope(kernel_, s.inner), defined);
    text_.keep(ids);
    body();
    if (ragged) out_.close();
    out_.close();
    text_.store_packs(stores);
    if (!pack_.empty())
      out_.line(str("*(", pack_, "*)&meeting[warp][sizeof pack.at[0] * ", place, "] = pack;"));
    text_.left = "";
    text_.set_vector(-1, 1);
    if (partial) out_.close();
    out_.close();
  }

  // for each of the thread's packs: where it starts, and whether the row has it.
  void open_packs(const Spread& s, bool partial) {
    const std::string base = s.chunks > 1 ? "1024 * chunk + " : "", place = place_of(s);
    out_.line("#pragma unroll");
    out_.open(str("for (int k = 0; k < ", s.packs, "; k++)"));
    text_.declare(place, str(base, shape_.lanes * s.vector, " * k + ", s.vector, " * lane"));
    if (partial) out_.open(str("if (", place, " < ", s.count, ")"));
    if (place != "e")
      text_.unpack(s.inner, Expr::symbol(tile_symbol(place), 0, s.count - 1), "e");
  }

  // Where a pack starts: in the row, and in the last loop.
  std::string place_of(const Spread& s) const { return s.inner.size() > 1 ? "place" : "e"; }

  void write_stores(const std::vector<const Step*>& stores, const std::vector<bool>& defined) {
    if (stores[0]->inner.empty()) {
      const std::string live = live_.empty() ? "" : " && live";
      const char* first = shape_.warps == 1 ? "lane == 0" : "threadIdx.x == 0";
      out_.open(str("if (", first, live, ")"));
      std::vector<bool> here = defined;
      text_.define(text_.needed(stores), {row_mask(kernel_), true}, here);
      for (const Step* step : stores) text_.write_store(*step);
      return out_.close();
    }
    const Spread& s = shape_.over(stores[0]->inner);
    if (!live_.empty()) out_.open("if (live)");
    open_chunks(s);
    const auto write_all = [&] {
      write_elements(s, stores, defined, [&] {
        for (const Step* step : stores) text_.write_store(*step);
      });
    };
    write_hastened(stores, defined, write_all);
    close_chunks(s);
    if (!live_.empty()) out_.close();
  }

  // Whether what these steps load is gone once they have stored: nothing can be done again.
  bool overwrites(const std::vector<const Step*>& steps) const {
    const std::vector<int> ids = text_.needed(steps);
    return std::any_of(steps.begin(), steps.end(), [&](const Step* step) {
      return step->kind == StepKind::Store && std::any_of(ids.begin(), ids.end(), [&](int id) {
               const Scalar& s = kernel_.scalars[id];
               return s.kind == ScalarKind::Load && s.buffer == step->buffer;
             });
    });
  }

  // All quotients and exponentials without a branch; where one was out of range, all again. What
  // the row alone says is known before.
  template <typename Write>
  void write_hastened(const std::vector<const Step*>& steps, const std::vector<bool>& defined,
                      Write write) {
    const CudaText::Hastened fast = text_.hastened(text_.needed(steps), defined);
    if (!fast.some || (!fast.is_known && overwrites(steps))) return write();
    if (fast.is_known)
      out_.open(str("if (", fast.exact, ")"));
    else
      out_.line(str("bool exact = ", fast.exact, ";"));
    text_.form = CudaText::Form::Fast;
    write();
    if (fast.is_known) {
      out_.close(" else {");
      out_.indent();
    } else {
      out_.open("if (!exact)");
    }
    text_.form = CudaText::Form::Slow;
    write();
    out_.close();
    text_.form = CudaText::Form::Each;
  }

  // What a row gives to each column's sum; then the block's warps add theirs.
  void write_fold_of_rows(const Step& step, int number, const std::vector<bool>& defined) {
    const Spread& s = shape_.over(step.inner);
    pack_ = str(text_.calls("tc_pack"), "<", c_type(step.dtype), ", ", s.vector, ">");
    open_chunks(s);
    write_elements(s, {&step}, defined, [&] {
      out_.line(str("pack.at[v] = ", text_.scalars.name(step.value), ";"));
    });
    close_chunks(s);
    pack_.clear();
    write_fold_sums(text_, step, number);
  }

  // --- reductions ---

  std::string value_of(const Step& step, DType type) const {
    const DType from = kernel_.scalars[step.value].dtype;
    return (compute_type(from) == type ? "" : str("(", c_type(type), ")")) +
           text_.scalars.name(step.value);
  }

  // Declares the row's chunk results, one set a step.
  void share(const std::string& type, const std::string& name, int64_t count) {
    if (shape_.is_shared()) out_.line(str("__shared__ ", type, " ", name, "[", count, "];"));
  }

  // A chunk's result for all warps of the row.
  void publish(const std::string& array, const std::string& value) {
    out_.line(str("if (lane == 0) ", array, "[chunk] = ", value, ";"));
  }
  void meet() { out_.line("__syncthreads();"); }

  // All reductions of a pass: the elements once, then each one's tree. A maximum that a sum_exp
  // takes anyway is not taken twice.
  void write_trees(const std::vector<int>& pass, std::vector<bool>& defined) {
    const Spread& s = shape_.over(kernel_.steps[pass[0]].inner);
    std::vector<Tree> trees = trees_of(kernel_, pass);
    for (const Tree& tree : trees) {
      out_.line(str(c_type(tree.type), " r", tree.number, ";"));
      share(c_type(tree.type), "part_" + tree.number, s.chunks);
      if (tree.is_sum_exp()) share(c_type(tree.type), "most_" + tree.number, s.chunks);
    }
    const std::vector<Tree> all = trees;
    std::erase_if(trees, [&](const Tree& tree) {
      return std::any_of(all.begin(), all.end(), [&](const Tree& other) {
        return other.maximum >= 0 && std::to_string(other.maximum) == tree.number;
      });
    });
    open_chunks(s);
    for (const Tree& tree : trees) declare_elements(text_, s, tree);
    write_hastened(steps_of(pass), defined, [&] {
      write_elements(s, steps_of(pass), defined, [&] {
        for (const Tree& tree : trees)
          out_.line(str("t_", tree.number, "[k * ", s.vector,
                        " + v] = ", value_of(*tree.step, tree.type), ";"));
      });
    });
    for (const Tree& tree : trees) write_tree(s, tree);
    close_chunks(s);
    if (shape_.is_shared()) {
      // What is left of the row alone (loads at places that data gives) is read while the others
      // are waited for.
      text_.define(needed_by_all(all_steps(kernel_)), {row_mask(kernel_), false}, defined);
      meet();
    }
    for (const Tree& tree : all) {
      if (shape_.is_shared()) fold_chunks(text_, s, tree);
      finish_reduction(text_, *tree.step, "r" + tree.number, tree.type);
    }
  }

  // A chunk's result goes to the row's register, or to all who share the row.
  void give(const Tree& tree, const std::string& number, const std::string& value) {
    if (!shape_.is_shared()) return out_.line(str("r", number, " = ", value, ";"));
    out_.line(str("const ", c_type(tree.type), " result_", number, " = ", value, ";"));
    publish("part_" + number, "result_" + number);
  }

  void write_tree(const Spread& s, const Tree& tree) {
    const std::string& n = tree.number;
    if (!tree.is_sum_exp())
      return give(tree, n, tree_of(text_, shape_, s, tree.step->op, tree.type, "t_" + n));
    const std::string sum = write_exponentials(text_, shape_, s, tree);
    if (tree.maximum >= 0) give(tree, std::to_string(tree.maximum), "largest_" + n);
    give(tree, n, sum);
    if (shape_.is_shared()) publish("most_" + n, "m_" + n);
  }

  void write_arg(const Step& step, int number, const std::vector<bool>& defined) {
    const Spread& s = shape_.over(step.inner);
    const DType type = accumulator(step.op, kernel_.scalars[step.value].dtype);
    out_.line(str("long long r", number, ";"));
    const std::string best = str(text_.calls("tc_best"), "<", c_type(type), ">"),
                      part = str("part_", number);
    const char* is_max = step.op == Op::argmax ? "true" : "false";
    const std::string all = str("tc_best_of_lanes<", is_max, ", ", shape_.lanes, ">(best)");
    share(best, part, s.chunks);
    open_chunks(s);
    out_.line(str(best, " best = {0, -1};"));
    write_elements(s, {&step}, defined, [&] {
      out_.line(str("best = tc_better<", is_max, ">(best, ", best, "{", value_of(step, type),
                    ", ", place_of(s), " + v});"));
    });
    if (!shape_.is_shared()) {
      out_.line(str("r", number, " = ", all, ".index;"));
      return close_chunks(s);
    }
    out_.line(str("best = ", all, ";"));
    publish(part, "best");
    close_chunks(s);
    meet();
    out_.open("");
    out_.line(str(best, " best = ", part, "[0];"));
    if (s.chunks > 1)
      out_.line(str("for (int c = 1; c < ", s.chunks, "; c++) best = tc_better<", is_max,
                    ">(best, ", part, "[c]);"));
    out_.line(str("r", number, " = best.index;"));
    out_.close();
  }

  CudaText& text_;
  Text& out_;
  const Kernel& kernel_;
  const int64_t rows_;
  RowShape shape_;
  std::vector<std::vector<int>> passes_;  // steps done together
  std::string live_;  // the flag of threads beyond the last row, where there are any
  bool guarded_ = false;
  std::string pack_;  // a fold's: the type of the values that a thread shares at once
  std::vector<int> kept_now_;
  std::vector<bool> private_;  // scalars that the thread alone computes which stores them
  KernelEntry entry_;
};

}  // namespace

bool fits_cuda_rows(const Kernel& kernel) {
  for (const Step& step : kernel.steps) {
    if (inner_count(kernel, step).constant() > (folds_rows(kernel) ? kChunk : kChunk * kChunk))
      return false;
  }
  return true;
}

KernelEntry write_cuda_rows(CudaText& text, const std::string& function) {
  return RowsWriter(text, function).write();
}

}  // namespace tiny_compile
