// How are loops written down? In C++ as loops, each value in the outermost one that it can be made
// in; in CUDA the outer loops are threads. A reduction calls a function of k for each element.
//
//   for (long long i0 = 0; i0 < n4; i0++) {
//     const auto f2a = [&](long long k) { const float v0 = b0[..]; const float v1 = tc_exp(v0); return v1; };
//     const float v2 = halves<0>(n3, f2a);
//     b1[i0] = v2;
//   }
#pragma once

#include "lessons/small/08_program.h"

namespace small {

// The values that a run makes for these results.
inline std::vector<bool> made_inside(const Formulas& f, const Ids& results, int64_t run) {
  std::vector<bool> inside(f.kernel.values.size());
  for (const int64_t id : results) inside[id] = true;
  for (int64_t id = std::ssize(inside); id-- > 0;) {
    inside[id] = inside[id] && (f.kernel.values[id].loops & f.inner);
    if (inside[id] && !f.is_kept_before(id, run))
      for (const int64_t operand : f.kernel.values[id].operands) inside[operand] = true;
  }
  return inside;
}
inline std::string lines_inside(const Formulas& f, const Ids& results, int64_t run) {
  const std::vector<bool> inside = made_inside(f, results, run);
  std::string text;
  for (int64_t id = 0; id < std::ssize(inside); id++)
    if (inside[id]) text += f.line(id, run);
  return text;
}

// "const auto f2a = [&](long long k) { .. return v1; };"
inline std::string function_of_k(const Formulas& f, const std::string& name, int64_t result,
                                 int64_t run, const char* parameters = "long long k") {
  return str("const auto ", name, " = [&](", parameters, ") {\n",
             lines_inside(f, {result}, run), "return ", v(result), ";\n};\n");
}
inline std::string reduction(const Formulas& f, int64_t id) {
  const Value& value = f.kernel.values[id];
  std::string text, call = str("halves<", value.op == Op::Max, ">(");
  if (value.op == Op::Matmul) call = "product(";
  call += size_name(f.kernel.sizes.back()).s;
  for (size_t k = 0; k < value.operands.size(); k++) {
    const std::string name = str("f", id, k == 0 ? "a" : "b");
    text += function_of_k(f, name, value.operands[k], id);
    call += ", " + name;
  }
  return str(text, "const float ", v(id), " = ", call, ");\n");
}

inline std::string row_value(const Formulas& f, int64_t id) {
  return reduces(f.kernel.values[id].op) ? reduction(f, id) : f.line(id);
}
inline Ids stored_inside(const Kernel& kernel) {
  Ids results;
  for (const Store& store : kernel.stores)
    if (inside_k(kernel, store)) results.push_back(store.value);
  return results;
}
inline Ids reductions_of(const Kernel& kernel) {
  Ids all;
  for (int64_t id = 0; id < std::ssize(kernel.values); id++)
    if (reduces(kernel.values[id].op)) all.push_back(id);
  return all;
}
inline std::string stores(const Formulas& f, bool inside) {
  std::string text;
  if (const Ids results = stored_inside(f.kernel); inside && !results.empty())
    text = lines_inside(f, results, kStores);
  for (const Store& store : f.kernel.stores)
    if (inside_k(f.kernel, store) == inside)
      text += str(f.element(store.node, store.at), " = ", v(store.value), ";\n");
  return text;
}
inline std::string all_stores(const Formulas& f) {
  const std::string inside = stores(f, true);
  if (inside.empty()) return stores(f, false);
  return str(stores(f, false), "for (long long k = 0; k < ", size_name(f.kernel.sizes.back()),
             "; k++) {\n", inside, "}\n");
}

// Values whose innermost loop is this one; -1: those in none.
inline std::string values_of(const Formulas& f, int loop) {
  std::string text;
  for (int64_t id = 0; id < std::ssize(f.kernel.values); id++)
    if (std::cmp_equal(std::bit_width(f.kernel.values[id].loops), loop + 1))
      text += row_value(f, id);
  return text;
}

inline std::string row_values(const Formulas& f) {  // all
  std::string text;
  for (int64_t id = 0; id < std::ssize(f.kernel.values); id++)
    if (!inside_k(f.kernel, id)) text += row_value(f, id);
  return text;
}

inline std::string cpp_loops(const Formulas& f, bool threads) {
  const Shape& sizes = f.kernel.sizes;
  std::string text = values_of(f, -1), ends;
  Text points("1");
  for (const int64_t size : sizes) points = size_name(size) * points;
  for (size_t d = 0; d + 1 < sizes.size(); d++) {
    const std::string i = str("i", d);
    if (threads && sizes[d] > 1)
      text += str("#pragma omp parallel for if (", points, " > 32768)\n");
    threads = threads && sizes[d] <= 1;
    text +=
        str("for (long long ", i, " = 0; ", i, " < ", size_name(sizes[d]), "; ", i, "++) {\n");
    if (d + 2 == sizes.size()) text += f.kept_arrays(size_name(sizes.back()));
    text += values_of(f, static_cast<int>(d));
    ends += "}\n";
  }
  return text + all_stores(f) + ends;
}

inline std::string cuda_threads(const Formulas& f) {
  const Shape rows(f.kernel.sizes.begin(), f.kernel.sizes.end() - 1);
  const Place row = spread({Text("i"), 1}, rows);
  std::string text =
      str("const long long i = block * 256ll + threadIdx.x;\nif (i >= ", count(rows),
          ") return;\n");
  for (size_t d = 0; d < rows.size(); d++)
    text += str("const long long i", d, " = ", row.along[d].text, ";\n");
  return text + row_values(f) + all_stores(f);
}

inline Plan row_by_row(const Program& program, bool cuda) {
  return plan_of(program, [cuda](Plan& plan, const Formulas& f) {
    const int64_t rows = count({f.kernel.sizes.begin(), f.kernel.sizes.end() - 1});
    add_kernel(plan, {"", f.arrays, (rows + 255) / 256},
               cuda ? cuda_threads(f) : cpp_loops(f, false), cuda);
  });
}

}  // namespace small
