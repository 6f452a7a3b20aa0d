// The editor of one message: its form, its preview and its faults.
import type { Context } from 'koa';
import type { Draft } from '../../../capabilities/delivery/templates.ts';
import { bodyTexts } from '../../../http/body-fields.ts';
import type { FormFault } from '../form-fault.ts';
import { refusalOptions } from '../forms.ts';
import { type DisplayText, renderConsole } from '../render.ts';
import type { ConsoleSession } from '../session.ts';
import { draftOf, type Message, type TemplateTexts } from './message.ts';
import { type BrandingDependencies, languageOf, languagesOf, PATH } from './shared.ts';

export interface Editor {
  message: Message;
  templateTexts: TemplateTexts;
  draft?: Draft;
  /** Whether an action was refused because the template is broken. */
  isRefused?: boolean;
  /** The refusal, by the Management API or by the page. */
  fault?: FormFault;
  /** Another error message for the whole page. */
  alert?: DisplayText;
  /** The address or number that it was sent to. */
  sent?: string;
}

/** Returns the scope required to change a message. */
export const changeScope = ({ connection }: Message) =>
  connection === undefined ? 'update:email_templates' : 'update:connections';

/** Returns the path of a message's page. */
export const pathOf = ({ name }: Message) => `${PATH}/messages/${name}`;

/** Renders a message from an entered or saved template, in the requested language. */
export function renderDraft(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  message: Message,
  templateTexts: TemplateTexts,
): Promise<Draft> {
  const language = languageOf(deps, bodyTexts(ctx).language ?? ctx.query.language);
  return draftOf(deps, message, { templateTexts, language, to: session.administrator.email });
}

const FIELDS = ['from', 'subject', 'body', 'number'] as const;
type FieldName = (typeof FIELDS)[number];

/** Returns the faults by field: errors of rendering, and a refusal. */
function faultsOf(broken: Draft['faults'], fault?: FormFault): Partial<Record<FieldName, FormFault>> {
  const rendered = Object.entries(broken).map(([name, message]) => [
    name,
    { status: 400, message, isEnglish: true },
  ]);
  // For a connection's message the API names the option: `options.email.subject`, and `options.template` for the
  // text.
  const last = (fault?.at ?? fault?.field ?? '').split(/\W/).at(-1) ?? '';
  return { ...Object.fromEntries(rendered), ...(fault && { [last === 'template' ? 'body' : last]: fault }) };
}

function labelOf(name: FieldName, isSms: boolean): DisplayText {
  if (name === 'number') return 't:console.branding.number';
  if (name === 'body') return isSms ? 't:console.branding.message.text' : 't:console.branding.message.html';
  return `t:console.branding.message.${name}`;
}

/** Shows the editor. */
export async function showEditor(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { message, templateTexts, draft, isRefused = false, fault, alert, sent }: Editor,
): Promise<void> {
  const language = languageOf(deps, bodyTexts(ctx).language ?? ctx.query.language);
  const { message: shown, faults: broken } =
    draft ?? (await renderDraft(deps, ctx, session, message, templateTexts));
  const isSms = shown.channel === 'sms';
  const faults = faultsOf(broken, fault);
  const [first] = FIELDS.filter((name) => faults[name] !== undefined);
  const shownFault = fault ?? (isRefused && first !== undefined ? faults[first] : undefined);
  const query = new URLSearchParams({ language, _csrf: session.token });
  await renderConsole(deps, ctx, session, {
    template: 'console/branding-message',
    title: 't:console.branding.tab.messages',
    ...(alert === undefined
      ? refusalOptions(shownFault, first && { id: first, label: labelOf(first, isSms) })
      : { alert, status: 400 }),
    model: {
      tab: 'messages',
      path: PATH,
      message: shownMessage(message),
      isSms,
      written: templateTexts,
      faults,
      subject: shown.channel === 'email' ? shown.subject : undefined,
      from: shown.from,
      language,
      languages: languagesOf(deps).filter(({ isEnabled }) => isEnabled),
      mayChange: session.can(changeScope(message)),
      sent,
      number: bodyTexts(ctx).number,
      frameUrl: `${pathOf(message)}/preview?${query}`,
    },
  });
}

/** Returns the data of a message that pages show. */
export function shownMessage({ name, kind, connection, isOwn, templateTexts }: Message) {
  return {
    name,
    kind,
    connection: connection?.name,
    path: `${PATH}/messages/${name}`,
    isOwn,
    isOff: templateTexts.enabled === false,
  };
}
