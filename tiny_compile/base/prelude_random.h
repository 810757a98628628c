// Random words of the prelude (see prelude.h): pure functions of seed, draw and index, so that
// any thread can make any of them.

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC
// 2011): word index % 4 of the block with counter (index / 4, draw) under the key `seed`.
TC_FN unsigned tc_philox(unsigned long long seed, unsigned long long draw,
                         unsigned long long index) {
  unsigned key0 = (unsigned)seed, key1 = (unsigned)(seed >> 32);
  unsigned c0 = (unsigned)(index >> 2), c1 = (unsigned)(index >> 34);
  unsigned c2 = (unsigned)draw, c3 = (unsigned)(draw >> 32);
  for (int round = 0; round < 10; round++) {
    const unsigned long long p = 0xd2511f53ull * c0, q = 0xcd9e8d57ull * c2;
    const unsigned n0 = (unsigned)(q >> 32) ^ c1 ^ key0, n2 = (unsigned)(p >> 32) ^ c3 ^ key1;
    c0 = n0;
    c1 = (unsigned)q;
    c2 = n2;
    c3 = (unsigned)p;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  // Two choices by a bit each: clang makes a switch of four, and no vector code of that.
  const unsigned low = index & 1u ? c1 : c0, high = index & 1u ? c3 : c2;
  return index & 2u ? high : low;
}
