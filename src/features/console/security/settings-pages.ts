// /console/security/attacks, …/sessions, …/tenant: the forms for settings.
import { isDeepStrictEqual } from 'node:util';
import type { Context } from 'koa';
import { bodyTexts } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { type ApiCallDependencies, callApi } from '../api-calls.ts';
import {
  type ConsolePageDependencies,
  type ConsoleSession,
  consoleForm,
  consolePage,
  redirectAfterForm,
} from '../console-page.ts';
import { type FormFault, faultIn, faultOf } from '../form-fault.ts';
import { refusalOptions } from '../forms.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { PARTS, type Part, pathOfPart, type SectionTab, tabsOf } from './tabs.ts';

// The forms for settings: their fields, the position of each in the settings of the Management API, and the
// conversion of values.

interface FieldBase {
  /** The name of the field in the form and in its message keys. */
  name: string;
  /** The path of the member in the settings. */
  at: readonly string[];
}

type SettingsField = FieldBase &
  (
    | { kind: 'switch' | 'text' | 'lines' }
    /** Whole numbers, unless `step` says otherwise. */
    | { kind: 'number'; least: number; most: number; step?: 'any' }
    | { kind: 'choice'; options: readonly string[] }
    /** A switch for one value of a list. */
    | { kind: 'member'; value: string }
  );

interface SettingsForm {
  name: string;
  part: Part;
  /** The section of the tenant file by which a refusal may name the member. */
  section?: string;
  read: string;
  write: string;
  /** The scope required to change them. */
  update: string;
  fields: readonly SettingsField[];
}

const attack = (path: string, section: string) => ({
  part: 'attacks' as const,
  section,
  read: `GET /attack-protection/${path}`,
  write: `PATCH /attack-protection/${path}`,
  update: 'update:attack_protection',
});

const tenant = {
  read: 'GET /tenants/settings',
  write: 'PATCH /tenants/settings',
  update: 'update:tenant_settings',
};

const hours = (name: string): SettingsField => ({
  name,
  at: [name],
  kind: 'number',
  least: 0.01,
  most: 87_600,
  step: 'any',
});

export const SETTINGS_FORMS: readonly SettingsForm[] = [
  {
    name: 'bruteForce',
    ...attack('brute-force-protection', 'bruteForceProtection'),
    fields: [
      { name: 'enabled', at: ['enabled'], kind: 'switch' },
      { name: 'block', at: ['shields'], kind: 'member', value: 'block' },
      { name: 'notify', at: ['shields'], kind: 'member', value: 'user_notification' },
      { name: 'max_attempts', at: ['max_attempts'], kind: 'number', least: 1, most: 100 },
      {
        name: 'mode',
        at: ['mode'],
        kind: 'choice',
        options: ['count_per_identifier_and_ip', 'count_per_identifier'],
      },
      { name: 'allowlist', at: ['allowlist'], kind: 'lines' },
    ],
  },
  {
    name: 'suspiciousIp',
    ...attack('suspicious-ip-throttling', 'suspiciousIpThrottling'),
    fields: [
      { name: 'enabled', at: ['enabled'], kind: 'switch' },
      { name: 'block', at: ['shields'], kind: 'member', value: 'block' },
      { name: 'admin', at: ['shields'], kind: 'member', value: 'admin_notification' },
      { name: 'login', at: ['stage', 'pre-login', 'max_attempts'], kind: 'number', least: 1, most: 100_000 },
      {
        name: 'signup',
        at: ['stage', 'pre-user-registration', 'max_attempts'],
        kind: 'number',
        least: 1,
        most: 100_000,
      },
      { name: 'allowlist', at: ['allowlist'], kind: 'lines' },
    ],
  },
  {
    name: 'sessions',
    part: 'sessions',
    ...tenant,
    fields: [
      hours('session_lifetime'),
      hours('idle_session_lifetime'),
      hours('ephemeral_session_lifetime'),
      hours('idle_ephemeral_session_lifetime'),
    ],
  },
  {
    name: 'tenant',
    part: 'tenant',
    ...tenant,
    fields: [
      { name: 'friendly_name', at: ['friendly_name'], kind: 'text' },
      { name: 'support_email', at: ['support_email'], kind: 'text' },
      { name: 'support_url', at: ['support_url'], kind: 'text' },
      { name: 'default_audience', at: ['default_audience'], kind: 'text' },
      { name: 'allowed_logout_urls', at: ['allowed_logout_urls'], kind: 'lines' },
      { name: 'log_retention_days', at: ['log_retention_days'], kind: 'number', least: 1, most: 3650 },
      { name: 'account_linking', at: ['account_linking'], kind: 'choice', options: ['never', 'suggest'] },
      { name: 'language_menu', at: ['language_menu'], kind: 'switch' },
    ],
  },
];

type Settings = Readonly<Record<string, unknown>>;

const valueAt = (settings: Settings, at: readonly string[]): unknown =>
  at.reduce<unknown>((value, name) => (value as Settings | undefined)?.[name], settings);

/** Returns the values that a form shows: strings, and `on` for a switch that is on. */
export function shownValues({ fields }: SettingsForm, settings: Settings): Record<string, string> {
  return Object.fromEntries(
    fields.map((field) => [field.name, shownValue(field, valueAt(settings, field.at))]),
  );
}

function shownValue(field: SettingsField, value: unknown): string {
  if (field.kind === 'switch') return value === true ? 'on' : '';
  if (field.kind === 'member') return Array.isArray(value) && value.includes(field.value) ? 'on' : '';
  if (field.kind === 'lines') return Array.isArray(value) ? value.join('\n') : '';
  return value === undefined || value === null ? '' : String(value);
}

// docs/understand/decisions/console-account.md#a-form-writes-what-somebody-has-changed
/**
 * Returns the settings that somebody has changed: those that a form only shows may be defaults, which the tenant file does not
 * have.
 * @param settings the current settings; values without a field are kept.
 */
function bodyOf(form: SettingsForm, sent: Readonly<Record<string, string>>, settings: Settings): object {
  const body: Record<string, unknown> = {};
  for (const field of form.fields) {
    const { at } = field;
    const before = valueAt(body, at) ?? valueAt(settings, at);
    const meant = (text: string) => sentValue(field, text, before);
    const value = meant(sent[field.name] ?? '');
    if (!isDeepStrictEqual(value, meant(shownValue(field, valueAt(settings, at))))) put(body, at, value);
  }
  return body;
}

/** Converts an entered text. An empty one becomes null, which restores the default. */
function sentValue(field: SettingsField, text: string, before: unknown): unknown {
  switch (field.kind) {
    case 'switch':
      return text === 'on';
    case 'member': {
      const others = (Array.isArray(before) ? before : []).filter((one) => one !== field.value);
      return text === 'on' ? [...others, field.value] : others;
    }
    case 'lines':
      return text.split(/\s+/).filter((line) => line !== '');
    case 'number':
      // A text that is not a number is sent unchanged: the API words the error.
      return text.trim() === '' ? null : Number.isFinite(Number(text)) ? Number(text) : text;
    default:
      return text.trim() === '' ? null : text.trim();
  }
}

function put(body: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    body[name] = value;
    return;
  }
  const inner = (body[name] ?? {}) as Record<string, unknown>;
  body[name] = inner;
  put(inner, rest, value);
}

export interface SecuritySettingsDependencies extends ConsolePageDependencies, ApiCallDependencies {}

interface RefusedForm {
  form: SettingsForm;
  sent: Readonly<Record<string, string>>;
  fault: FormFault;
}

const partsWithForms = [...new Set(SETTINGS_FORMS.map(({ part }) => part))];

export const settingsRoutes = Object.fromEntries([
  ...partsWithForms.map((part) => [
    `GET ${pathOfPart(part)}`,
    consolePage<SecuritySettingsDependencies>('security', { scopes: PARTS[part] }, (deps, ctx, session) =>
      showPart(deps, ctx, session, part),
    ),
  ]),
  ...SETTINGS_FORMS.map((form) => [
    `POST ${pathOfPart(form.part)}/${form.name}`,
    consoleForm<SecuritySettingsDependencies>(
      'security',
      { scopes: [form.update], isDangerous: true },
      (deps, ctx, session) => save(deps, ctx, session, form),
    ),
  ]),
]) as RouteDeclarations<SecuritySettingsDependencies>;

async function settingsOf(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { read }: SettingsForm,
): Promise<Record<string, unknown>> {
  return (await callApi(deps, ctx, session, read)).body as Record<string, unknown>;
}

/** The texts are message keys. */
type ShownField = SettingsField & {
  id: string;
  text: string;
  help?: string;
  value: string;
  fault?: FormFault | undefined;
};

interface SecuritySettingsModel {
  tabs: SectionTab[];
  part: Part;
  forms: { name: string; path: string; text: string; mayChange: boolean; fields: ShownField[] }[];
}

export const SECURITY_SETTINGS_PAGE = declareConsolePage<SecuritySettingsModel>('console/security-settings');

async function showPart(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
  part: Part,
  refused?: RefusedForm,
): Promise<void> {
  const { has } = deps.views.locale(ctx);
  const forms = await Promise.all(
    SETTINGS_FORMS.filter((form) => form.part === part).map(async (form) => {
      const isRefused = refused?.form === form;
      const values = isRefused ? refused.sent : shownValues(form, await settingsOf(deps, ctx, session, form));
      const text = `console.security.${form.name}` as const;
      return {
        name: form.name,
        path: `${pathOfPart(part)}/${form.name}`,
        text,
        mayChange: session.can(form.update),
        fields: form.fields.map((field) => ({
          ...field,
          id: `${form.name}-${field.name}`,
          text: `${text}.${field.name}` as const,
          ...(has(`${text}.${field.name}.help`) && { help: `${text}.${field.name}.help` }),
          value: values[field.name] ?? '',
          ...(isRefused && { fault: faultAt(refused.fault, form, field.at.join('.')) }),
        })),
      };
    }),
  );
  const faulty = forms.flatMap(({ fields }) => fields).find(({ fault }) => fault !== undefined);
  await renderConsole(deps, ctx, session, {
    page: SECURITY_SETTINGS_PAGE,
    section: 'security',
    title: `t:console.security.${part}`,
    model: { tabs: tabsOf(session, part), part, forms },
    ...refusalOptions(refused?.fault, faulty && { id: faulty.id, label: `t:${faulty.text}` }),
  });
}

/** Returns the fault of a member, whose path may begin at the body or at the section of the tenant file. */
function faultAt(fault: FormFault, { section }: SettingsForm, member: string): FormFault | undefined {
  const memberFault = faultIn(fault, member);
  return memberFault ?? (section === undefined ? undefined : faultIn(fault, `${section}.${member}`));
}

async function save(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
  form: SettingsForm,
): Promise<void> {
  const sent = bodyTexts(ctx);
  try {
    const body = bodyOf(form, sent, await settingsOf(deps, ctx, session, form));
    if (Object.keys(body).length > 0) await callApi(deps, ctx, session, form.write, { body });
  } catch (thrown) {
    return showPart(deps, ctx, session, form.part, { form, sent, fault: faultOf(thrown) });
  }
  redirectAfterForm(ctx, pathOfPart(form.part), 'console.said.saved');
}
