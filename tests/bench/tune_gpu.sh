#!/bin/sh
# What does the search find on a GPU, and what had the model said? About three minutes:
#   make -j16 all && tests/bench/tune_gpu.sh > out
# Each graph: tuned for 15 s with an empty memory, then the policy's and the winner's times by `tc bench`.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TC_CACHE_DIR="$work/cache"
mkdir -m 700 "$TC_CACHE_DIR"

softmax() {  # name outer count rows
  cat > "$work/$1.graph" <<END
graph $1(%0 x: f32[$2,$3,$4]) {
  %1: f32[$2,1,$4] = max %0 {axes=[1], keepdim=1}
  %2: f32[$2,$3,$4] = expand %1
  %3: f32[$2,$3,$4] = sub %0, %2
  %4: f32[$2,$3,$4] = exp %3
  %5: f32[$2,1,$4] = sum %4 {axes=[1], keepdim=1}
  %6: f32[$2,$3,$4] = expand %5
  %7: f32[$2,$3,$4] = div %4, %6
  return %7
}
END
}
reduce() {  # name op type axis result
  printf 'graph %s(%%0 x: %s) {\n  %%1: %s = %s %%0 {axes=[%s]}\n  return %%1\n}\n' \
    "$1" "$3" "$5" "$2" "$4" > "$work/$1.graph"
}
softmax columns512 64 512 1024
softmax columns1000 8 1000 4096
softmax columns196 64 196 2048
softmax rows4096 1 16384 4096
reduce colsum sum 'f32[16384,4096]' 0 'f32[4096]'
reduce rowsum sum 'f32[65536,1000]' 1 'f32[65536]'
reduce amax max 'bf16[2048,128,1280]' 1 'bf16[2048,1280]'

product() {  # name type m k n
  cat > "$work/$1.graph" <<END
graph $1(%0 x: $2[$3,$4], %1 w: $2[$4,$5]) {
  %2: $2[$3,$5] = matmul %0, %1
  return %2
}
END
}
for file in "$work"/*.graph; do
  name=$(basename "$file" .graph)
  echo "== $name"
  build/tc tune "$file" --backend=cuda --seconds=8 > "$work/$name.program"
  grep '^#' "$work/$name.program"
  build/tc explain "$file" --backend=cuda | sed -n '/^== schedules/,/^$/p'
  echo "policy: $(build/tc bench "$file" --backend=cuda | tail -1)"
  echo "winner: $(build/tc bench "$work/$name.program" --backend=cuda | tail -1)"
  build/tc tune "$file" --backend=cuda --seconds=12 | grep -c remembered
done

# Products: the library's algorithms and split-k against its first choice and generated tiles.
product large bf16 4096 4096 4096
product deep bf16 64 65536 64
product flat bf16 16 4096 4096
product single f32 1024 1024 1024
for name in large deep flat single; do
  echo "== $name"
  build/tc tune "$work/$name.graph" --backend=cuda --matmul=library --seconds=8 > "$work/$name.program"
  grep '^#' "$work/$name.program"
  echo "first:  $(build/tc bench "$work/$name.graph" --backend=cuda --matmul=library | tail -1)"
  echo "winner: $(build/tc bench "$work/$name.program" --backend=cuda | tail -1)"
done
