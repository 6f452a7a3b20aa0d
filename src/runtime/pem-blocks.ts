// Finds PEM blocks in text, in one pass.

interface PemBlock {
  label: string;
  /** Base64, and whatever else is there; no hyphen. */
  content: string;
  text: string;
}

const BEGIN = '-----BEGIN ';

/** Returns the blocks in a text (RFC 7468 §2). */
export function pemBlocks(text: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  for (let start = text.indexOf(BEGIN); start >= 0; ) {
    const labelAt = start + BEGIN.length;
    const contentAt = text.indexOf('-', labelAt) + 5;
    const label = text.slice(labelAt, contentAt - 5);
    const contentEnd = text.indexOf('-', contentAt);
    // Without another hyphen nothing ends.
    if (contentAt < labelAt || contentEnd < 0) break;
    const end = `-----END ${label}-----`;
    const isBlock =
      text.startsWith('-----', contentAt - 5) && contentEnd > contentAt && text.startsWith(end, contentEnd);
    const blockEnd = isBlock ? contentEnd + end.length : contentEnd;
    if (isBlock)
      blocks.push({ label, content: text.slice(contentAt, contentEnd), text: text.slice(start, blockEnd) });
    start = text.indexOf(BEGIN, isBlock ? blockEnd : labelAt);
  }
  return blocks;
}
