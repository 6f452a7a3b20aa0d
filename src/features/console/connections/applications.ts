// The applications of a connection, as switches.
import type { Context } from 'koa';
import { bodyTexts } from '../../../http/body-fields.ts';
import { callApi } from '../api-calls.ts';
import { redirectAfterForm } from '../page.ts';
import { pageNumber, queryText } from '../query.ts';
import { renderConsole } from '../render.ts';
import type { ConsoleSession } from '../session.ts';
import { type ConnectionsDependencies, connectionAt, headOf, PATH } from './shared.ts';

interface Application {
  client_id: string;
  name: string;
}

/** The number of applications on a page. */
const PER_PAGE = 50;

/** Shows a page of applications. */
export async function showApplications(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, session);
  const page = pageNumber(queryText(ctx, 'page'));
  const query = {
    fields: 'client_id,name',
    is_global: 'false',
    per_page: String(PER_PAGE),
    page: String(page),
    include_totals: 'true',
  };
  const { body } = await callApi(deps, ctx, session, 'GET /clients', { query });
  const { clients, total } = body as { clients: Application[]; total: number };
  const head = headOf(session, connection, 'applications');
  const pageUrl = (number: number) => `${head.connection.path}/applications?page=${number}`;
  await renderConsole(deps, ctx, session, {
    template: 'console/connections-applications',
    title: { text: head.connection.title },
    model: {
      ...head,
      // Not named `page`: in every template that is the page itself, with its nonce and language.
      number: page,
      applications: clients.map((one) => ({
        ...one,
        isEnabled: connection.enabled_clients.includes(one.client_id),
      })),
      previousUrl: page > 0 ? pageUrl(page - 1) : undefined,
      nextUrl: (page + 1) * PER_PAGE < total ? pageUrl(page + 1) : undefined,
    },
  });
}

/** Changes the applications whose switch differs from the state that the form was shown with. */
export async function saveApplications(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const texts = bodyTexts(ctx);
  const body = Object.entries(texts).flatMap(([name, before]) => {
    const id = name.startsWith('was.') ? name.slice('was.'.length) : undefined;
    const status = id !== undefined && texts[`application.${id}`] === 'true';
    return id === undefined || status === (before === 'true') ? [] : [{ client_id: id, status }];
  });
  const id = String(ctx.params.id);
  if (body.length > 0)
    await callApi(deps, ctx, session, 'PATCH /connections/:id/clients', { params: { id }, body });
  const page = pageNumber(texts.page ?? '');
  redirectAfterForm(
    ctx,
    `${PATH}/${encodeURIComponent(id)}/applications${page > 0 ? `?page=${page}` : ''}`,
    'console.said.saved',
  );
}
