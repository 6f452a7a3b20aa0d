// Times as pages show them: in the page's language, and in UTC, since where their reader is nobody has said.
import type { Context } from 'koa';
import type { Views } from './views.ts';

/** A time for `<time datetime>`, and its text. */
interface ShownTime {
  iso: string;
  text: string;
}

/** ISO 8601, or epoch milliseconds; nothing is shown of no time. */
export interface ShowTime {
  (at: string | number): ShownTime;
  (at: string | number | null | undefined): ShownTime | undefined;
}

const FORMS = {
  second: { dateStyle: 'medium', timeStyle: 'medium' },
  minute: { dateStyle: 'medium', timeStyle: 'short' },
  day: { dateStyle: 'medium' },
  hour: { weekday: 'short', hour: '2-digit', minute: '2-digit' },
} as const;

/** Shows times to the second, the minute, or less, in the language of a page. One for all times of a page: making it is slow. */
export function timesOf(
  { views }: { views: Pick<Views, 'locale'> },
  ctx: Context,
  form: keyof typeof FORMS = 'minute',
): ShowTime {
  const format = new Intl.DateTimeFormat(views.locale(ctx).tag, { ...FORMS[form], timeZone: 'UTC' });
  const shown = (at: string | number): ShownTime => {
    const date = new Date(at);
    return { iso: date.toISOString(), text: `${format.format(date)} UTC` };
  };
  return ((at) => (at === null || at === undefined ? undefined : shown(at))) as ShowTime;
}
