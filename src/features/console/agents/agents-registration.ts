// /console/agents/registration: whether applications may register themselves, what that opens, and how.
import type { Context } from 'koa';
import { z } from 'zod';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { SECURITY_MODES } from '../../../records/clients/third-parties.ts';
import { UNUSED_DAYS } from '../../../records/tenant/tenant-settings.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import type { FormFault } from '../form-fault.ts';
import { refusalOf, refusalOptions } from '../forms.ts';
import { declareConsolePage, type FaultyField, renderConsole } from '../render.ts';
import { type Opened, openedToAll } from './agents-apis.ts';
import { AGENTS, type AgentsDependencies, LET_IN, tenantSettings, UPDATE_TENANT } from './agents-shown.ts';

const PATH = `${AGENTS}/registration`;

/** How applications may register themselves. */
export interface RegistrationSettings {
  isOn: boolean;
  mode: (typeof SECURITY_MODES)[number];
  needsToken: boolean;
  /** As a form has it. */
  days: string;
}

const settingsAnswer = z.object({
  flags: z.looseObject({ enable_dynamic_client_registration: z.boolean().optional() }),
  dynamic_client_registration_security_mode: z.enum(SECURITY_MODES).default('strict'),
  dynamic_client_registration: z
    .object({
      requires_token: z.boolean().default(false),
      unused_days: z.number().default(UNUSED_DAYS.usual),
    })
    .nullish(),
});

/** @param body the settings of the tenant, as the API answers them. */
export function registrationSettingsOf(body: unknown): RegistrationSettings {
  const settings = settingsAnswer.parse(body);
  return {
    isOn: settings.flags.enable_dynamic_client_registration === true,
    mode: settings.dynamic_client_registration_security_mode,
    needsToken: settings.dynamic_client_registration?.requires_token ?? false,
    days: String(settings.dynamic_client_registration?.unused_days ?? UNUSED_DAYS.usual),
  };
}

export const registrationRoutes: RouteDeclarations<AgentsDependencies> = {
  [`GET ${PATH}` as const]: consolePage<AgentsDependencies>(
    'agents',
    { scopes: LET_IN },
    async (deps, ctx, session) =>
      showRegistration(deps, ctx, session, registrationSettingsOf(await tenantSettings(deps, ctx, session))),
  ),
  [`POST ${PATH}` as const]: consoleForm<AgentsDependencies>(
    'agents',
    { scopes: LET_IN, isDangerous: true },
    saveRegistration,
  ),
  // One click: what closes the door needs no login before it.
  [`POST ${PATH}/off` as const]: consoleForm<AgentsDependencies>(
    'agents',
    { scopes: [UPDATE_TENANT], isDangerous: false },
    async (deps, ctx, session) => {
      const body = { flags: { enable_dynamic_client_registration: null } };
      await callApi(deps, ctx, session, 'PATCH /tenants/settings', { body });
      redirectAfterForm(ctx, AGENTS, 'console.agents.said.off');
    },
  ),
};

interface AgentsRegistrationModel {
  path: string;
  agentsPath: string;
  settings: RegistrationSettings;
  modes: { name: string; text: string; isCurrent: boolean }[];
  opened: Opened;
  mostDays: number;
  faults: { days?: FormFault };
}

export const AGENTS_REGISTRATION_PAGE = declareConsolePage<AgentsRegistrationModel>(
  'console/agents-registration',
);

const DAYS: FaultyField = { id: 'days', label: 't:console.agents.days' };

async function showRegistration(
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
  settings: RegistrationSettings,
  fault?: FormFault,
): Promise<void> {
  const ofDays = fault?.field === DAYS.id ? fault : undefined;
  await renderConsole(deps, ctx, session, {
    page: AGENTS_REGISTRATION_PAGE,
    title: 't:console.agents.registration',
    model: {
      path: PATH,
      agentsPath: AGENTS,
      settings,
      modes: SECURITY_MODES.map((name) => ({
        name,
        text: `console.agents.mode.${name}`,
        isCurrent: name === settings.mode,
      })),
      opened: await openedToAll(deps, ctx, session),
      mostDays: UNUSED_DAYS.most,
      faults: ofDays === undefined ? {} : { days: ofDays },
    },
    ...refusalOptions(fault, ofDays && DAYS),
  });
}

async function saveRegistration(
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const before = registrationSettingsOf(await tenantSettings(deps, ctx, session));
  const { mode, token, days } = formFields(ctx, 'mode', 'token', 'days');
  const settings: RegistrationSettings = {
    isOn: before.isOn,
    mode: SECURITY_MODES.find((one) => one === mode) ?? before.mode,
    needsToken: token === 'on',
    days: days.trim(),
  };
  const unusedDays = /^\d{1,4}$/.test(settings.days) ? Number(settings.days) : 0;
  if (unusedDays < 1 || unusedDays > UNUSED_DAYS.most) {
    const fault = { status: 400, key: 'console.agents.days.fault', field: DAYS.id };
    return showRegistration(deps, ctx, session, settings, fault);
  }
  const isOther = settings.needsToken !== before.needsToken || unusedDays !== Number(before.days);
  // docs/understand/decisions/console-account.md#a-form-writes-what-somebody-has-changed
  const body = {
    ...(!before.isOn && { flags: { enable_dynamic_client_registration: true } }),
    ...(settings.mode !== before.mode && { dynamic_client_registration_security_mode: settings.mode }),
    ...(isOther && {
      dynamic_client_registration: { requires_token: settings.needsToken, unused_days: unusedDays },
    }),
  };
  try {
    if (Object.keys(body).length > 0) await callApi(deps, ctx, session, 'PATCH /tenants/settings', { body });
  } catch (thrown) {
    return showRegistration(deps, ctx, session, settings, refusalOf(thrown));
  }
  redirectAfterForm(ctx, AGENTS, before.isOn ? 'console.said.saved' : 'console.agents.said.on');
}
