// Compares two texts line by line.

/** A line of the first text, of the second, or of both. */
interface DiffLine {
  kind: 'same' | 'removed' | 'added';
  text: string;
  /** Line numbers in the first and the second text, from 1. */
  before?: number;
  after?: number;
}

/** The maximum number of pairs of lines to compare. Beyond it all lines count as removed and added. */
const MAX_PAIRS = 4_000_000;

/** Returns the lines of two texts, each marked as the same, removed or added. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const [left, right] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head++;
  let tail = 0;
  while (
    tail < left.length - head &&
    tail < right.length - head &&
    left.at(-1 - tail) === right.at(-1 - tail)
  ) {
    tail++;
  }
  const [one, other] = [left.slice(head, left.length - tail), right.slice(head, right.length - tail)];
  const kinds: DiffLine['kind'][] = [
    ...new Array<'same'>(head).fill('same'),
    ...(one.length * other.length > MAX_PAIRS ? replacedKinds(one, other) : comparedKinds(one, other)),
    ...new Array<'same'>(tail).fill('same'),
  ];
  return numberLines(kinds, left, right);
}

const replacedKinds = (one: readonly string[], other: readonly string[]): DiffLine['kind'][] => [
  ...one.map((): 'removed' => 'removed'),
  ...other.map((): 'added' => 'added'),
];

/** Compares by a longest common subsequence. */
function comparedKinds(one: readonly string[], other: readonly string[]): DiffLine['kind'][] {
  const width = other.length + 1;
  // For each pair of positions, the length of the longest common subsequence of the lines from there.
  const common = new Uint16Array((one.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      common[i * width + j] =
        one[i] === other[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const kinds: DiffLine['kind'][] = [];
  let [i, j] = [0, 0];
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      kinds.push('same');
      i++;
      j++;
    } else if (i < one.length && (j === other.length || at(i + 1, j) >= at(i, j + 1))) {
      kinds.push('removed');
      i++;
    } else {
      kinds.push('added');
      j++;
    }
  }
  return kinds;
}

function numberLines(
  kinds: readonly DiffLine['kind'][],
  left: readonly string[],
  right: readonly string[],
): DiffLine[] {
  let [before, after] = [0, 0];
  return kinds.map((kind) => {
    if (kind !== 'added') before++;
    if (kind !== 'removed') after++;
    return {
      kind,
      text: (kind === 'added' ? right[after - 1] : left[before - 1]) ?? '',
      ...(kind !== 'added' && { before }),
      ...(kind !== 'removed' && { after }),
    };
  });
}

interface Gap {
  kind: 'gap';
}

/** Keeps the changed lines with a few lines around each; a gap stands for lines left out. */
export function withContext(lines: readonly DiffLine[], around = 3): (DiffLine | Gap)[] {
  const isNear = lines.map(() => false);
  for (const [index, { kind }] of lines.entries()) {
    if (kind === 'same') continue;
    for (let at = Math.max(0, index - around); at <= Math.min(lines.length - 1, index + around); at++)
      isNear[at] = true;
  }
  return lines.flatMap((line, index): (DiffLine | Gap)[] => {
    if (isNear[index]) return [line];
    return index === 0 || isNear[index - 1] === true ? [{ kind: 'gap' }] : [];
  });
}
