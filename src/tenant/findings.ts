// What `gatehouse check` and the start say about a tenant file that they take: the most important first, and one line for
// all findings of a kind.
import { type Place, placed } from './source.ts';

/** What a finding means, in the order in which people are told. */
const RANKS = [
  /** Somebody may get in, or get something, who should not; or a check does not run. */
  'unsafe',
  /** Users notice: something is kept without effect. */
  'unusable',
  /** It works in another way than at the hosted service. */
  'different',
  /** The hosted service has given it up. */
  'deprecated',
  /** No part of Gatehouse reads it. */
  'unknown',
] as const;
type Rank = (typeof RANKS)[number];

export interface Finding {
  rank: Rank;
  /** The path of the member, such as `clients[0].name`. */
  at: string;
  /** The sentence about it, without the path. */
  says: string;
  /** The sentence about several, which goes on with a list of them; by default `says`. Findings that share it are of one kind. */
  several?: string;
  /** What it is called in the list; by default its path. */
  item?: string;
}

/** Returns sentences that begin with a path as findings. */
export const findingsOf = (rank: Rank, sentences: readonly string[]): Finding[] =>
  sentences.map((sentence) => {
    const [, at = '', says = ''] = /^([^\s:]*):? (.*)$/s.exec(sentence) ?? [];
    return { rank, at, says };
  });

// A sentence that goes on with a verb needs no colon after the path.
export const sentenceOf = ({ at, says }: Finding): string =>
  `${at}${/^(?:is|has) /.test(says) ? ' ' : ': '}${says}`;

/** @param placeOf returns the place of a member by its path. */
export function reportOf(findings: readonly Finding[], placeOf: (at: string) => Place): string[] {
  const ranked = RANKS.flatMap((rank) => findings.filter((finding) => finding.rank === rank));
  const kinds = Map.groupBy(ranked, ({ rank, several, says }) => `${rank} ${several ?? says}`);
  return [...kinds.values()].map((group) => {
    const [first, ...others] = group as [Finding, ...Finding[]];
    if (others.length === 0) return placed(sentenceOf(first), placeOf(first.at));
    return `${first.several === undefined ? first.says : `${group.length} ${first.several}`}: ${listOf(group, placeOf)}`;
  });
}

/** Returns the items of a list, each once with all its lines. */
function listOf(findings: readonly Finding[], placeOf: (at: string) => Place): string {
  // In one file the reader knows which.
  const isOneFile = new Set(findings.map(({ at }) => placeOf(at).file)).size === 1;
  const items = Map.groupBy(findings, ({ item, at }) => item ?? at.replaceAll(/\[\d+\]/g, '[]'));
  return [...items]
    .map(([item, all]) => {
      const places = all.map(({ at }) => placeOf(at)).filter(({ line }) => line !== undefined);
      const files = Map.groupBy(places, ({ file }) => file);
      const lines = isOneFile
        ? [`line ${[...new Set(places.map(({ line }) => line))].join(', ')}`]
        : [...files].map(
            ([file, those]) => `${file}:${[...new Set(those.map(({ line }) => line))].join(',')}`,
          );
      return places.length === 0 ? item : `${item} (${lines.join('; ')})`;
    })
    .join('; ');
}
