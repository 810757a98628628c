// Valid graphs for the tests of the Graph's text: between them they use every op.
#pragma once

#include <string>
#include <vector>

namespace tiny_compile::tests {

inline std::vector<std::string> valid_graphs() {
  return {R"(graph pointwise(%0 x: f32[2,3], %1 y: f32[2,3], %2 i: i32[4], %3 j: i32[4]) {
  %4: f32[2,3] = add %0, %1     # mlp.cpp:14
  %5: f32[2,3] = sub %4, %1     # mlp.cpp:15
  %6: f32[2,3] = mul %5, %1     # fuse
  %7: f32[2,3] = div %6, %1
  %8: f32[2,3] = floor_divide %7, %0
  %9: f32[2,3] = remainder %8, %0
  %10: f32[2,3] = pow %9, %0
  %11: f32[2,3] = minimum %10, %0
  %12: f32[2,3] = maximum %11, %0
  %13: f32[2,3] = neg %12
  %14: f32[2,3] = abs %13
  %15: f32[2,3] = sign %14
  %16: f32[2,3] = exp %15
  %17: f32[2,3] = expm1 %16
  %18: f32[2,3] = log %17
  %19: f32[2,3] = log1p %18
  %20: f32[2,3] = sin %19
  %21: f32[2,3] = cos %20
  %22: f32[2,3] = tanh %21
  %23: f32[2,3] = sigmoid %22
  %24: f32[2,3] = erf %23
  %25: f32[2,3] = gelu %24
  %26: f32[2,3] = silu %25
  %27: f32[2,3] = sqrt %26
  %28: f32[2,3] = rsqrt %27
  %29: f32[2,3] = reciprocal %28
  %30: f32[2,3] = floor %29
  %31: f32[2,3] = ceil %30
  %32: f32[2,3] = round %31
  %33: f32[2,3] = trunc %32
  %34: bool[2,3] = eq %33, %0
  %35: bool[2,3] = ne %33, %0
  %36: bool[2,3] = lt %33, %0
  %37: bool[2,3] = le %33, %0
  %38: bool[2,3] = gt %33, %0
  %39: bool[2,3] = ge %34, %35
  %40: bool[2,3] = bitwise_and %38, %39
  %41: i32[4] = bitwise_or %2, %3
  %42: i32[4] = bitwise_xor %41, %3
  %43: i32[4] = bitwise_not %42
  %44: i32[4] = shift_left %43, %2
  %45: i32[4] = shift_right %44, %2
  %46: i32[4] = popcount %45
  %47: f32[2,3] = where %40, %0, %1
  %48: bf16[2,3] = cast %47
  %49: f32[2,3] = exp2 %47
  %50: f32[2,3] = log2 %49
  %51: f32[2,3] = log10 %50
  %52: f32[2,3] = tan %51
  %53: f32[2,3] = asin %52
  %54: f32[2,3] = acos %53
  %55: f32[2,3] = atan %54
  %56: f32[2,3] = atan2 %55, %0
  %57: f32[2,3] = erfinv %56
  %58: f32[2,3] = lgamma %57
  %59: f32[2,3] = digamma %58
  %60: f32[2,3] = zeta %59, %0
  %61: i32[2,3] = bitcast %60
  %62: f32[2,3] = logaddexp %60, %0
  %63: f32[2,3] = fma %62, %0, %59
  %64: f32[2,3] = softplus %63
  return %48, %46, %46
}
)",
          R"(graph views_and_reductions(%0 x: f32[4,6] {strides=[1,4]}, %1 b: bool[0,3]) {
  %2: f32[24] = reshape %0
  %3: f32[6,4] = permute %0 {axes=[1,0]}
  %4: f32[2,6,4] = expand %3
  %5: f32[2,3,4] = slice %4 {axis=1, start=1, stop=6, step=2}
  %6: f32[2,3,4] = flip %5 {axes=[2,0]}
  %7: f32[2,3,3,2] = window %6 {axis=2, step=1, size=2}
  %8: f32[2,2] = sum %7 {axes=[2,1]}
  %9: f32[2,1,1,2] = prod %7 {axes=[1,2], keepdim=1}
  %10: f32[] = max %8 {axes=[0,1]}
  %11: f32[2,2] = min %8 {axes=[]}
  %12: i64[2] = argmax %8 {axes=[1]}
  %13: i64[1,1] = argmin %8 {axes=[1,0], keepdim=1}
  %14: bool[3] = any %1 {axes=[0]}
  %15: bool[0] = all %1 {axes=[1]}
  %16: f32[2] = sum_exp %8 {axes=[1]}
  %17: i64[0] = sum %1 {axes=[1]}
  return
}
)",
          R"(graph indexed(%0 a: f16[5,2,3], %1 b: f16[5,3,7]) {
  %2: f16[5,2,7] = matmul %0, %1
  %3: i64[5] = iota
  %4: f16[] = constant {value=0.5}
  %5: u64[2] = constant {value=1}
  %6: u32[8,8] = philox %5 {draw=3}
  %7: i64[5,1,1] = reshape %3
  %8: f16[5,1,1] = gather %2, %7 {axis=2}
  %9: f32[] = input learning.rate_2
  %10: f16[5,2,7] = scatter_add %2, %7, %8 {axis=1}
  %11: f16[5,4,7] = concat %10, %2 {axis=1}
  %12: f16[6,0,7] = pad %11 {low=[1,-2,0], high=[0,-2,0], value=-0.0}
  %13: f16[6,0,7] = cumsum %12 {axis=0}
  %14: bool[2] = constant {value=true}
  %15: f16[6,0,7] = cumprod %12 {axis=0}
  %16: f16[6,0,7] = logcumsumexp %12 {axis=1}
  %17: i64[6,0,7] = cummax %12 {axis=2}
  %18: i64[6,0,7] = cummin %12 {axis=0}
  %19: f16[5,2,7] = scatter %2, %7, %8 {axis=1}
  %20: f16[5,2,7] = scatter_prod %2, %7, %8 {axis=1}
  %21: f16[5,2,7] = scatter_max %2, %7, %8 {axis=1}
  %22: f16[5,2,7] = scatter_min %2, %7, %8 {axis=1}
  %23: i64[6,0,7] = argsort %12 {axis=2}
  %24: i64[2] = argsort_descending %14 {axis=0}
  return %13, %9
}
)",
          R"(graph symbolic[n: 2..4096, m: 0..1099511627776](
    %0 x: f32[n,m],
    %1 weights: f32[m,8],
    %2 bias: f32[8] {strides=[n]}) {
  %3: f32[n,8] = matmul %0, %1     # mlp.cpp:3
  %4: f32[n,8] = expand %2
  %5: f32[n,8] = add %3, %4
  %6: f32[n*8] = reshape %5
  %7: f32[n*8 + 3] = pad %6 {low=[3], high=[0], value=inf}
  %8: f32[(n + 1)/2,8] = slice %5 {axis=0, start=0, stop=n, step=2}
  %9: f32[n*2,8] = concat %5, %4 {axis=0}
  return %8, %7, %9
}
)",
          R"(graph calls[n: 1..64](%0 x: f32[n,2], %1 y: f32[n,2]) {
  %2: (f32[n,2], f32[n]) = call %0, %1 {  # model.cpp:7
    graph block(%0 a: f32[n,2], %1 b: f32[n,2]) {
      %2: f32[n,2] = add %0, %1           # model.cpp:3
      %3: (f32[n]) = call %2 {
        graph row_sums(%0 a: f32[n,2]) {
          %1: f32[n] = sum %0 {axes=[1]}
          return %1
        }
      }
      %4: f32[n] = item %3 {index=0}
      return %2, %4
    }
  }
  %3: f32[n] = item %2 {index=1}          # model.cpp:8
  %4: (i64[4]) = call {
    graph four() {
      %0: i64[4] = iota
      return %0
    }
  }
  %5: i64[4] = item %4 {index=0}
  %6: (f32[n]) = custom_vjp %3 {          # model.cpp:9
    graph rectified(%0 a: f32[n]) {
      %1: f32[n] = abs %0
      return %1
    }
    graph rectified_backward(%0 a: f32[n], %1 y: f32[n], %2 g: f32[n]) {
      %3: f32[n] = mul %1, %2
      return %3
    }
  }
  %7: f32[n] = item %6 {index=0}
  %8: (f32[n]) = checkpoint %7 {
    graph region(%0 a: f32[n]) {
      %1: f32[n] = exp %0 {again=2}
      return %1
    }
  }
  %9: f32[n] = item %8 {index=0}
  %10: f32[n] = exp %9 {again=1}
  %11: f32[] = sum %10 {axes=[0], again=1}
  return %3, %5, %7, %9, %11
}
)",
          R"(graph small[n: 1..8](%0 x: f32[n,2]) {
  %1: f32[2,n] = permute %0 {axes=[1,0]}  # mlp.cpp:3
  %2: f32[2] = max %1 {axes=[1]}
  return %2
}
)"};
}

}  // namespace tiny_compile::tests
