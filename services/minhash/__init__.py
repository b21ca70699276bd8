"""MinHash near-duplicate machinery: tokens, shingles, signatures, band keys, exact Jaccard and saved indexes."""
