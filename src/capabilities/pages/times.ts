// Formats times for pages: in the page's language, and in UTC, because the reader's time zone is not known.
import type { Context } from 'koa';
import type { Views } from './views.ts';

/** A time for `<time datetime>`, and its text. */
export interface FormattedTime {
  iso: string;
  text: string;
}

/** Formats a time given as ISO 8601 or epoch milliseconds. Returns undefined for a missing time. */
export interface FormatTime {
  (at: string | number): FormattedTime;
  (at: string | number | null | undefined): FormattedTime | undefined;
}

const DAY = { year: 'numeric', month: 'short', day: 'numeric' } as const;

const FORMS = {
  second: { ...DAY, hour: 'numeric', minute: '2-digit', second: '2-digit' },
  minute: { ...DAY, hour: 'numeric', minute: '2-digit' },
  day: DAY,
  hour: { weekday: 'short', hour: '2-digit', minute: '2-digit' },
} as const;

/**
 * Returns a function that formats times in the language of a page. One should serve all times of a page: creating it
 * is slow.
 */
export function timesOf(
  { views }: { views: Pick<Views, 'locale'> },
  ctx: Context,
  form: keyof typeof FORMS = 'minute',
): FormatTime {
  const format = new Intl.DateTimeFormat(views.locale(ctx).tag, {
    ...FORMS[form],
    timeZone: 'UTC',
    timeZoneName: 'short',
  });
  const formatted = (at: string | number): FormattedTime => {
    const date = new Date(at);
    return { iso: date.toISOString(), text: format.format(date) };
  };
  return ((at) => (at === null || at === undefined ? undefined : formatted(at))) as FormatTime;
}
