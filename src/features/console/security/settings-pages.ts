// /console/security/attacks, …/sessions, …/tenant: the forms for settings.
import type { Context } from 'koa';
import { bodyTexts } from '../../../http/body-fields.ts';
import type { RouteDeclarations } from '../../../http/routes.ts';
import { type ApiCallDependencies, callApi } from '../api-calls.ts';
import { type FormFault, faultIn, faultOf } from '../form-fault.ts';
import { refusalOptions } from '../forms.ts';
import {
  type ConsolePageDependencies,
  type ConsoleSession,
  consoleForm,
  consolePage,
  redirectAfterForm,
} from '../page.ts';
import { renderConsole } from '../render.ts';
import { bodyOf, SETTINGS_FORMS, type SettingsForm, shownValues } from './settings-forms.ts';
import { PARTS, type Part, pathOfPart, tabsOf } from './tabs.ts';

export interface SecuritySettingsDependencies extends ConsolePageDependencies, ApiCallDependencies {}

/** A refused form with the entered values. */
interface RefusedForm {
  form: SettingsForm;
  sent: Readonly<Record<string, string>>;
  fault: FormFault;
}

const partsWithForms = [...new Set(SETTINGS_FORMS.map(({ part }) => part))];

/** The routes: a page for each part, and a post for each form. */
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
    template: 'console/security-settings',
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
    await callApi(deps, ctx, session, form.write, { body });
  } catch (thrown) {
    return showPart(deps, ctx, session, form.part, { form, sent, fault: faultOf(thrown) });
  }
  redirectAfterForm(ctx, pathOfPart(form.part), 'console.said.saved');
}
