// How is a sum of products over labelled axes made of primitives? Two operands at a time become a
// batched matmul: labels that both have and somebody still wants are batches, labels that both have and
// nobody wants are summed, the others are rows and columns.
//
//   einsum("bij,bjk->bik")   =>   reshape [b, i, j], reshape [b, j, k], matmul, reshape, permute
#include "tiny_compile/trace/einsum.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace tiny_compile {
namespace {

// One character an axis. Axes of "..." are '0', '1', ... counted from its last one.
using Labels = std::string;

struct Term {
  Tensor tensor;
  Labels labels;
};

bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

// The text, and the place to blame for it.
struct Equation {
  const std::string& text;
  const Location& where;
  std::vector<Labels> terms = {""};  // as written, "..." as one '.'
  Labels result = {};
  bool has_result = false;

  [[noreturn]] void refuse(const std::string& why) const {
    fail_at(current_place(where), str("einsum '", text, "': ", why));
  }
};

// Two axes of one label; none: npos.
std::pair<size_t, size_t> repeated(const Labels& labels) {
  for (size_t first = 0; first < labels.size(); first++) {
    const size_t second = labels.find(labels[first], first + 1);
    if (second != Labels::npos) return {first, second};
  }
  return {Labels::npos, Labels::npos};
}

// "iji" => "ji": two axes of one label become their diagonal, of [n*n] every (n+1)-th element.
Term diagonals(const Equation& equation, Term term) {
  while (true) {
    const auto [first, second] = repeated(term.labels);
    if (first == Labels::npos) return term;
    const SizeList sizes = term.tensor.sizes();
    const Size& n = sizes[first];
    const char label = term.labels[first];
    if (sizes[second] != n)
      equation.refuse(str("'", label, "' is ", n, " and ", sizes[second]));
    Sizes order;
    SizeList shape;
    Labels labels;
    for (size_t axis = 0; axis < sizes.size(); axis++) {
      if (axis == first || axis == second) continue;
      order.push_back(static_cast<int64_t>(axis));
      shape.push_back(sizes[axis]);
      labels += term.labels[axis];
    }
    order.insert(order.end(), {static_cast<int64_t>(first), static_cast<int64_t>(second)});
    shape.push_back(n * n);
    const Tensor flat = reshape(permute(term.tensor, order), shape);
    const int64_t stride = n + 1;  // a step is a number
    term = {slice(flat, -1, 0, {}, stride), labels + label};
  }
}

// Sums the labels that are not wanted.
Term summed(const Term& term, const Labels& wanted) {
  Sizes axes;
  Labels kept;
  for (size_t axis = 0; axis < term.labels.size(); axis++) {
    if (has(wanted, term.labels[axis])) kept += term.labels[axis];
    if (!has(wanted, term.labels[axis])) axes.push_back(static_cast<int64_t>(axis));
  }
  return axes.empty() ? term : Term{sum(term.tensor, axes), kept};
}

Size size_of_label(const Term& term, char label) {
  return term.tensor.size(static_cast<int64_t>(term.labels.find(label)));
}

// An axis of 1 broadcasts to the other operand's.
Size common_size(const Equation& equation, const Term& left, const Term& right, char label) {
  const Size a = has(left.labels, label) ? size_of_label(left, label) : Size(1);
  const Size b = has(right.labels, label) ? size_of_label(right, label) : Size(1);
  if (same_expression(a, b) || b.is_number(1)) return a;
  if (a.is_number(1)) return b;
  if (a != b && a != 1 && b != 1) equation.refuse(str("'", label, "' is ", a, " and ", b));
  return a == 1 ? b : a;
}

// The term with its axes in this order, those that it lacks as axes of 1.
Tensor aligned(const Term& term, const Labels& order) {
  Sizes axes;
  SizeList shape;
  for (char label : order) {
    if (!has(term.labels, label)) continue;
    axes.push_back(static_cast<int64_t>(term.labels.find(label)));
  }
  for (char label : order)
    shape.push_back(has(term.labels, label) ? size_of_label(term, label) : Size(1));
  return reshape(permute(term.tensor, axes), shape);
}

// As rows of a matmul: [batch..., group, group], axes of 1 expanded to what the other has.
Tensor grouped(const Equation& equation, const Term& left, const Term& right, const Term& term,
               const std::vector<Labels>& groups) {
  Labels order;
  SizeList wide, shape;
  for (const Labels& group : groups) {
    Size count = 1;
    for (char label : group) {
      wide.push_back(common_size(equation, left, right, label));
      count = count * wide.back();
    }
    order += group;
    shape.push_back(count);
  }
  return reshape(expand(aligned(term, order), wide), shape);
}

// Labels not in `wanted` are summed.
Term product(const Equation& equation, const Term& a, const Term& b, const Labels& wanted) {
  const Term left = summed(a, wanted + b.labels), right = summed(b, wanted + left.labels);
  Labels batch, rows, columns, inner;
  for (char label : left.labels) {
    const bool both = has(right.labels, label);
    (!both ? rows : has(wanted, label) ? batch : inner) += label;
  }
  for (char label : right.labels) {
    if (!has(left.labels, label)) columns += label;
  }
  const Labels labels = batch + rows + columns;
  if (inner.empty()) {
    const Tensor x = aligned(left, labels);
    return {x * aligned(right, labels), labels};
  }
  SizeList shape;
  for (char label : labels) shape.push_back(common_size(equation, left, right, label));
  const Tensor x = grouped(equation, left, right, left, {batch, rows, inner});
  const Tensor y = grouped(equation, left, right, right, {batch, inner, columns});
  return {reshape(matmul(x, y), shape), labels};
}

// "ij, ...j -> i..." => terms "ij", ".j", result "i."
Equation parse(const std::string& text, const Location& where) {
  Equation equation{text, where};
  for (size_t at = 0; at < text.size(); at++) {
    const char c = text[at];
    Labels& labels = equation.has_result ? equation.result : equation.terms.back();
    if (c == ' ') continue;
    if (std::isalpha(static_cast<unsigned char>(c))) {
      labels += c;
    } else if (text.compare(at, 3, "...") == 0 && !has(labels, '.')) {
      labels += '.';
      at += 2;
    } else if (text.compare(at, 2, "->") == 0 && !equation.has_result) {
      equation.has_result = true;
      at++;
    } else if (c == ',' && !equation.has_result) {
      equation.terms.emplace_back();
    } else {
      equation.refuse(str("'", c, "' at position ", at,
                          " is none of letters, ',', one '...' a term and one '->'"));
    }
  }
  return equation;
}

class Einsum {
 public:
  explicit Einsum(const Equation& equation) : equation_(equation) {}

  Tensor compute(const std::vector<Tensor>& operands) {
    const Equation& equation = equation_;
    if (equation.terms.size() != operands.size())
      equation_.refuse(
          str("it has ", equation.terms.size(), " terms for ", operands.size(), " operands"));
    std::vector<Term> terms;
    for (size_t k = 0; k < operands.size(); k++)
      terms.push_back(diagonals(equation, labelled(operands[k], equation.terms[k])));
    const Labels result = equation.has_result ? widened(equation.result) : implied(equation);
    check_result(terms, result);
    Term left = terms[0];
    for (size_t k = 1; k < terms.size(); k++)
      left = product(equation, left, terms[k], wanted(terms, k + 1, result));
    left = summed(left, result);
    Sizes order;
    for (char label : result) order.push_back(static_cast<int64_t>(left.labels.find(label)));
    return permute(left.tensor, order);
  }

 private:
  // The operand with one label an axis.
  Term labelled(const Tensor& operand, Labels labels) {
    if (!operand.defined()) equation_.refuse("an operand is an undefined tensor");
    const Tensor tensor = seen(operand, equation_.where);
    const int64_t named =
        std::count_if(labels.begin(), labels.end(), [](char c) { return c != '.'; });
    const int64_t more = tensor.rank() - named;
    if (more < 0 || (more > 0 && !has(labels, '.')) || more > 10)
      equation_.refuse(
          str("'", labels, "' does not name the axes of [", join(tensor.sizes(), ","), "]"));
    if (const size_t dots = labels.find('.'); dots != Labels::npos)
      labels.replace(dots, 1, ellipsis(more));
    ellipsis_ = std::max(ellipsis_, more);
    return {tensor, labels};
  }

  // "10" for two axes
  static Labels ellipsis(int64_t axes) {
    Labels labels;
    for (int64_t k = axes; k-- > 0;) labels += static_cast<char>('0' + k);
    return labels;
  }

  Labels widened(Labels result) const {
    if (const size_t dots = result.find('.'); dots != Labels::npos)
      result.replace(dots, 1, ellipsis(ellipsis_));
    return result;
  }

  Labels implied(const Equation& equation) const {
    Labels all, once;
    for (const Labels& term : equation.terms) all += term;
    std::sort(all.begin(), all.end());
    for (char label : all) {
      if (label != '.' && std::count(all.begin(), all.end(), label) == 1) once += label;
    }
    return ellipsis(ellipsis_) + once;
  }

  void check_result(const std::vector<Term>& terms, const Labels& result) const {
    for (char label : result) {
      const bool known = std::any_of(terms.begin(), terms.end(),
                                     [&](const Term& term) { return has(term.labels, label); });
      if (!known) equation_.refuse(str("the result's '", label, "' labels no operand's axis"));
      if (std::count(result.begin(), result.end(), label) > 1)
        equation_.refuse(str("the result names '", label, "' twice"));
    }
  }

  Labels wanted(const std::vector<Term>& terms, size_t from, Labels result) const {
    for (size_t k = from; k < terms.size(); k++) result += terms[k].labels;
    return result;
  }

  const Equation& equation_;
  int64_t ellipsis_ = 0;  // axes that the longest "..." stands for
};

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands, Here here) {
  const Location where = location_of(here);
  const Scope scope(where);
  const Equation parsed = parse(equation, where);
  return Einsum(parsed).compute(operands);
}

}  // namespace tiny_compile
