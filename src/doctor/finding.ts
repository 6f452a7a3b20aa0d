// What the doctor says of one thing that it has looked at.

type Verdict = 'ok' | 'warning' | 'fault';

export interface Finding {
  /** What was looked at, in a word or two. */
  check: string;
  /** `fault`: the server does not start, or people cannot log in; `warning`: it will come to that, or is unsafe. */
  verdict: Verdict;
  /** One sentence, with what to do. Never a secret. */
  text: string;
}

/** The findings of a check by that name. */
export function findings(check: string): Record<Verdict, (text: string) => Finding> {
  const of = (verdict: Verdict) => (text: string) => ({ check, verdict, text });
  return { ok: of('ok'), warning: of('warning'), fault: of('fault') };
}

/** The message of what was thrown. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

export const DAY = 86_400_000;
