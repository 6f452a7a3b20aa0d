// Times as pages of the console show them: in the page's language, and in UTC, as logs and colleagues elsewhere have them.
import type { Context } from 'koa';
import type { Views } from '../pages/views.ts';

/** A time for `<time datetime>`, and its text. */
export interface ShownTime {
  iso: string;
  text: string;
}

const FORMS = {
  second: { dateStyle: 'medium', timeStyle: 'medium' },
  minute: { dateStyle: 'medium', timeStyle: 'short' },
  day: { dateStyle: 'medium' },
  hour: { weekday: 'short', hour: '2-digit', minute: '2-digit' },
} as const;

/** Shows times to the second, the minute, or less, in the language of a page. */
export function timesOf({ views }: { views: Pick<Views, 'locale'> }, ctx: Context, form: keyof typeof FORMS) {
  const format = new Intl.DateTimeFormat(views.locale(ctx).tag, { ...FORMS[form], timeZone: 'UTC' });
  return (at: string | number): ShownTime => {
    const date = new Date(at);
    return { iso: date.toISOString(), text: `${format.format(date)} UTC` };
  };
}
