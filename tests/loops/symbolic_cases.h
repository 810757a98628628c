// Ops with a symbolic size.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/graph/graph.h"

namespace tiny_compile::tests {

// A graph of one op on n; its other lines are what it needs.
struct SymbolicCase {
  const char* op;
  const char* inputs;
  const char* body;
};

inline const std::vector<SymbolicCase> kSymbolicCases = {
    {"add", "%0 x: f32[n,3], %1 y: f32[n,3]", "%2: f32[n,3] = add %0, %1\nreturn %2"},
    {"cast", "%0 x: f32[n,3]", "%1: bf16[n,3] = cast %0\nreturn %1"},
    {"reshape", "%0 x: f32[n,3]", "%1: f32[n*3] = reshape %0\nreturn %1"},
    {"reshape", "%0 x: f32[n*3]",
     "%1: f32[3,n] = reshape %0\n%2: f32[3,n] = exp %1\nreturn %2"},
    {"permute", "%0 x: f32[n,3]", "%1: f32[3,n] = permute %0 {axes=[1,0]}\nreturn %1"},
    {"expand", "%0 x: f32[3], %1 y: f32[n]", "%2: f32[n,3] = expand %0\nreturn %2"},
    {"slice", "%0 x: f32[n,3]",
     "%1: f32[(n + 1)/2,3] = slice %0 {axis=0, start=0, stop=n, step=2}\nreturn %1"},
    {"flip", "%0 x: f32[n,3]", "%1: f32[n,3] = flip %0 {axes=[0]}\nreturn %1"},
    {"window", "%0 x: f32[n + 2]",
     "%1: f32[n,3] = window %0 {axis=0, step=1, size=3}\nreturn %1"},
    {"sum", "%0 x: f32[n,3]", "%1: f32[3] = sum %0 {axes=[0]}\nreturn %1"},
    {"sum", "%0 x: f32[n,3]", "%1: f32[n] = sum %0 {axes=[1]}\nreturn %1"},
    {"prod", "%0 x: f32[n,3]", "%1: f32[] = prod %0 {axes=[0,1]}\nreturn %1"},
    {"max", "%0 x: f32[n,3]", "%1: f32[1,3] = max %0 {axes=[0], keepdim=1}\nreturn %1"},
    {"min", "%0 x: f32[n,3]", "%1: f32[n] = min %0 {axes=[1]}\nreturn %1"},
    {"argmax", "%0 x: f32[n,3]", "%1: i64[3] = argmax %0 {axes=[0]}\nreturn %1"},
    {"argmin", "%0 x: f32[n,3]", "%1: i64[] = argmin %0 {axes=[1,0]}\nreturn %1"},
    {"any", "%0 x: bool[n,3]", "%1: bool[3] = any %0 {axes=[0]}\nreturn %1"},
    {"all", "%0 x: bool[n,3]", "%1: bool[3] = all %0 {axes=[0]}\nreturn %1"},
    {"sum_exp", "%0 x: f32[3,n]", "%1: f32[3] = sum_exp %0 {axes=[1]}\nreturn %1"},
    {"matmul", "%0 x: f32[n,4], %1 y: f32[4,3]", "%2: f32[n,3] = matmul %0, %1\nreturn %2"},
    {"matmul", "%0 x: f32[2,4], %1 y: f32[4,n]", "%2: f32[2,n] = matmul %0, %1\nreturn %2"},
    {"matmul", "%0 x: f32[n,2,3], %1 y: f32[n,3,2]",
     "%2: f32[n,2,2] = matmul %0, %1\nreturn %2"},
    {"matmul", "%0 x: f32[5,n], %1 y: f32[n,4]", "%2: f32[5,4] = matmul %0, %1\nreturn %2"},
    {"gather", "%0 x: f32[n,3], %1 i: i64[2,3]",
     "%2: i64[2,3] = sub %1, %1\n%3: f32[2,3] = gather %0, %2 {axis=0}\nreturn %3"},
    {"gather", "%0 x: f32[3,2], %1 i: i64[n,2]",
     "%2: f32[n,2] = gather %0, %1 {axis=0}\nreturn %2"},
    {"scatter_add", "%0 x: f32[3,2], %1 i: i64[n,2], %2 s: f32[n,2]",
     "%3: f32[3,2] = scatter_add %0, %1, %2 {axis=0}\nreturn %3"},
    {"concat", "%0 x: f32[n,3], %1 y: f32[4,3]",
     "%2: f32[n*2 + 4,3] = concat %0, %1, %0 {axis=0}\nreturn %2"},
    {"pad", "%0 x: f32[n,3]",
     "%1: f32[n + 3,3] = pad %0 {low=[1,0], high=[2,0], value=1.5}\nreturn %1"},
    {"pad", "%0 x: f32[n + 2]",
     "%1: f32[n] = pad %0 {low=[-1], high=[-1], value=0}\nreturn %1"},
    {"cumsum", "%0 x: f32[n,3]", "%1: f32[n,3] = cumsum %0 {axis=0}\nreturn %1"},
    {"cumprod", "%0 x: f32[3,n]", "%1: f32[3,n] = cumprod %0 {axis=1}\nreturn %1"},
    {"logcumsumexp", "%0 x: f32[n,3]", "%1: f32[n,3] = logcumsumexp %0 {axis=0}\nreturn %1"},
    {"cummax", "%0 x: f32[n,3]", "%1: i64[n,3] = cummax %0 {axis=0}\nreturn %1"},
    {"cummin", "%0 x: f32[3,n]", "%1: i64[3,n] = cummin %0 {axis=1}\nreturn %1"},
    {"argsort", "%0 x: f32[n,3]", "%1: i64[n,3] = argsort %0 {axis=0}\nreturn %1"},
    {"argsort_descending", "%0 x: bf16[3,n]",
     "%1: i64[3,n] = argsort_descending %0 {axis=1}\nreturn %1"},
    {"scatter", "%0 x: f32[3,2], %1 i: i64[n,2], %2 s: f32[n,2]",
     "%3: f32[3,2] = scatter %0, %1, %2 {axis=0}\nreturn %3"},
    {"scatter_prod", "%0 x: f32[3,2], %1 i: i64[n,2], %2 s: f32[n,2]",
     "%3: f32[3,2] = scatter_prod %0, %1, %2 {axis=0}\nreturn %3"},
    {"scatter_max", "%0 x: f32[3,2], %1 i: i64[n,2], %2 s: f32[n,2]",
     "%3: f32[3,2] = scatter_max %0, %1, %2 {axis=0}\nreturn %3"},
    {"scatter_min", "%0 x: f32[3,2], %1 i: i64[n,2], %2 s: f32[n,2]",
     "%3: f32[3,2] = scatter_min %0, %1, %2 {axis=0}\nreturn %3"},
    {"iota", "%0 x: f32[n]", "%1: i64[n] = iota\nreturn %1"},
    {"constant", "%0 x: f32[n]", "%1: f32[n] = constant {value=2.5}\nreturn %1"},
    {"philox", "%0 x: f32[n]",
     "%1: u64[2] = constant {value=3}\n%2: u32[n,3] = philox %1 {draw=1}\nreturn %2"},
    {"call", "%0 x: f32[n,3]",
     "%1: (f32[n]) = call %0 {\ngraph f(%0 a: f32[n,3]) {\n%1: f32[n] = sum %0 {axes=[1]}\n"
     "return %1\n}\n}\n%2: f32[n] = item %1 {index=0}\nreturn %2"},
    {"checkpoint", "%0 x: f32[n]",
     "%1: (f32[n]) = checkpoint %0 {\ngraph f(%0 a: f32[n]) {\n%1: f32[n] = abs %0\n"
     "return %1\n}\n}\n%2: f32[n] = item %1 {index=0}\nreturn %2"},
    {"custom_vjp", "%0 x: f32[n]",
     "%1: (f32[n]) = custom_vjp %0 {\ngraph f(%0 a: f32[n]) {\n%1: f32[n] = abs %0\n"
     "return %1\n}\ngraph b(%0 a: f32[n], %1 y: f32[n], %2 g: f32[n]) {\n"
     "%3: f32[n] = mul %1, %2\nreturn %3\n}\n}\n%2: f32[n] = item %1 {index=0}\nreturn %2"},
};

inline Graph graph_of(const SymbolicCase& one, int64_t least = 1) {
  return parse_graph(
      str("graph f[n: ", least, "..4096](", one.inputs, ") {\n", one.body, "\n}\n"));
}

}  // namespace tiny_compile::tests
