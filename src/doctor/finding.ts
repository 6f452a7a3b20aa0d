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

/** Tokens of others are dated: beyond this they are refused as not yet good, or too old. Milliseconds. */
const SKEW = { warning: 5_000, fault: 60_000 };

/** What is said of the clock here. @param ahead of that of `whom`, milliseconds. */
export function clockFinding(ahead: number, whom: string): Finding {
  const clocks = findings('clock');
  // Dates of HTTP are whole seconds.
  const seconds = Math.round(ahead / 1000);
  const text = `${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} ${whom}`;
  if (Math.abs(ahead) > SKEW.fault) return clocks.fault(`${text}: set it by NTP`);
  return Math.abs(ahead) > SKEW.warning ? clocks.warning(`${text}: set it by NTP`) : clocks.ok(text);
}
