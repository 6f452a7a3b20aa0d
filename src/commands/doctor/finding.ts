// The result of one of the doctor's checks.

type Verdict = 'ok' | 'warning' | 'fault' | 'by hand';

export interface Finding {
  /** What was checked, in a word or two. */
  check: string;
  /**
   * `fault`: the server does not start, or users cannot log in; `warning`: that is going to happen, or something is
   * unsafe; `by hand`: nothing here can tell, and somebody has to look.
   */
  verdict: Verdict;
  /** One sentence, with what to do. Never a secret. */
  text: string;
}

export function findings(check: string): Record<Exclude<Verdict, 'by hand'>, (text: string) => Finding> {
  const withVerdict = (verdict: Verdict) => (text: string) => ({ check, verdict, text });
  return { ok: withVerdict('ok'), warning: withVerdict('warning'), fault: withVerdict('fault') };
}

export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

export const DAY_MS = 86_400_000;

/**
 * How far clocks may differ, milliseconds: tokens of others have a date, and would be refused as too old or not yet
 * valid.
 */
const MAX_SKEW_MS = { warning: 5_000, fault: 60_000 };

/** @param ahead how far it is ahead of the clock of `whom`, milliseconds. */
export function clockFinding(ahead: number, reference: string): Finding {
  const clocks = findings('clock');
  // Dates in HTTP are whole seconds.
  const seconds = Math.round(ahead / 1000);
  const text = `${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} ${reference}`;
  if (Math.abs(ahead) > MAX_SKEW_MS.fault) return clocks.fault(`${text}: set it by NTP`);
  return Math.abs(ahead) > MAX_SKEW_MS.warning ? clocks.warning(`${text}: set it by NTP`) : clocks.ok(text);
}
