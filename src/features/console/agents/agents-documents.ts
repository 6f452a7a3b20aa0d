// /console/agents/documents: whether applications are known by the document at their client_id, what that opens, and whose.
import type { Context } from 'koa';
import { z } from 'zod';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import type { FormFault } from '../form-fault.ts';
import { refusalOf, refusalOptions } from '../forms.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { type Opened, openedToAll } from './agents-apis.ts';
import { AGENTS, type AgentsDependencies, LET_IN, tenantSettings, UPDATE_TENANT } from './agents-shown.ts';

const PATH = `${AGENTS}/documents`;

/** Whose documents are read. The hosts are as a form has them, one a line. */
export interface DocumentSettings {
  isOn: boolean;
  allowed: string;
  denied: string;
}

const hosts = z.array(z.string()).nullish();

const settingsAnswer = z.object({
  client_id_metadata_document_supported: z.boolean().nullish(),
  client_id_metadata_documents: z.object({ allowed_hosts: hosts, denied_hosts: hosts }).nullish(),
});

/** @param body the settings of the tenant, as the API answers them. */
export function documentSettingsOf(body: unknown): DocumentSettings {
  const settings = settingsAnswer.parse(body);
  const { allowed_hosts: allowed, denied_hosts: denied } = settings.client_id_metadata_documents ?? {};
  return {
    isOn: settings.client_id_metadata_document_supported === true,
    allowed: (allowed ?? []).join('\n'),
    denied: (denied ?? []).join('\n'),
  };
}

export const documentsRoutes: RouteDeclarations<AgentsDependencies> = {
  [`GET ${PATH}` as const]: consolePage<AgentsDependencies>(
    'agents',
    { scopes: LET_IN },
    async (deps, ctx, session) =>
      showDocuments(deps, ctx, session, documentSettingsOf(await tenantSettings(deps, ctx, session))),
  ),
  [`POST ${PATH}` as const]: consoleForm<AgentsDependencies>(
    'agents',
    { scopes: LET_IN, isDangerous: true },
    saveDocuments,
  ),
  [`POST ${PATH}/off` as const]: consoleForm<AgentsDependencies>(
    'agents',
    { scopes: [UPDATE_TENANT], isDangerous: false },
    async (deps, ctx, session) => {
      const body = { client_id_metadata_document_supported: null };
      await callApi(deps, ctx, session, 'PATCH /tenants/settings', { body });
      redirectAfterForm(ctx, AGENTS, 'console.agents.said.documentsOff');
    },
  ),
};

interface AgentsDocumentsModel {
  path: string;
  agentsPath: string;
  settings: DocumentSettings;
  opened: Opened;
}

export const AGENTS_DOCUMENTS_PAGE = declareConsolePage<AgentsDocumentsModel>('console/agents-documents');

async function showDocuments(
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
  settings: DocumentSettings,
  fault?: FormFault,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    page: AGENTS_DOCUMENTS_PAGE,
    title: 't:console.agents.documents',
    model: {
      path: PATH,
      agentsPath: AGENTS,
      settings,
      opened: await openedToAll(deps, ctx, session),
    },
    ...refusalOptions(fault, undefined),
  });
}

async function saveDocuments(deps: AgentsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const before = documentSettingsOf(await tenantSettings(deps, ctx, session));
  const { isOn } = before;
  const { allowed, denied } = formFields(ctx, 'allowed', 'denied');
  const [allowedHosts, deniedHosts] = [linesOf(allowed), linesOf(denied)];
  // An empty list of allowed hosts would allow none.
  const lists = {
    ...(allowedHosts.length > 0 && { allowed_hosts: allowedHosts }),
    ...(deniedHosts.length > 0 && { denied_hosts: deniedHosts }),
  };
  const isSame = (hosts: readonly string[], text: string) => hosts.join('\n') === text;
  const isOther = !isSame(allowedHosts, before.allowed) || !isSame(deniedHosts, before.denied);
  // docs/understand/decisions/console-account.md#a-form-writes-what-somebody-has-changed
  const body = {
    ...(!isOn && { client_id_metadata_document_supported: true }),
    ...(isOther && {
      client_id_metadata_documents: Object.keys(lists).length > 0 ? lists : null,
    }),
  };
  try {
    if (Object.keys(body).length > 0) await callApi(deps, ctx, session, 'PATCH /tenants/settings', { body });
  } catch (thrown) {
    return showDocuments(deps, ctx, session, { isOn, allowed, denied }, refusalOf(thrown));
  }
  redirectAfterForm(ctx, AGENTS, isOn ? 'console.said.saved' : 'console.agents.said.documentsOn');
}

/** Returns the hosts of a field, one a line, as URLs have them. */
const linesOf = (text: string): string[] =>
  text
    .split(/\s+/)
    .filter((line) => line !== '')
    .map((line) => line.toLowerCase());
