// A server with every page and representative models, over TLS, with the middleware of the real server, for tests of
// pages.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Koa, { type Context } from 'koa';
import { createTenantLiquid, reportingLiquid } from '../../src/capabilities/liquid/liquid.ts';
import {
  createViews,
  type LayoutModel,
  type Page,
  type PageOptions,
  type PageWithModel,
  pageWith,
} from '../../src/capabilities/pages/views.ts';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { AuthError } from '../../src/http/errors.ts';
import { securityHeaders } from '../../src/http/server/application.ts';
import { readBody } from '../../src/http/server/body.ts';
import { createCsrf } from '../../src/http/server/csrf.ts';
import { brandingSchema } from '../../src/records/tenant/tenant.ts';
import { tenantSettingsSchema } from '../../src/records/tenant/tenant-settings.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';

export const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));

/** The members of the tenant that a test may replace. */
export interface SiteTenant {
  tenant?: object;
  branding?: object;
}

/** The members of models that the site fills in. */
type Filled = 'action' | 'csrf';
/** What of a model has to be given: all but the members that may be missing, at any depth. */
type Given<T> = T extends readonly (infer E)[]
  ? readonly Given<E>[]
  : T extends object
    ? { [K in keyof T as undefined extends T[K] ? never : K]: Given<T[K]> } & {
        [K in keyof T as undefined extends T[K] ? K : never]?: Given<T[K]>;
      }
    : T;
type Unfilled<M, K extends PropertyKey = Filled> = M extends unknown
  ? Given<Omit<M, K> & Partial<Pick<M, K & keyof M>>>
  : never;

/** A page of the site. The form's token and address are filled in. */
export interface SitePage extends PageOptions, PageWithModel {}

/** Puts a page of the site together. */
export const sitePage = <M extends LayoutModel>(
  page: Page<M>,
  model: NoInfer<Unfilled<M>>,
  options: PageOptions = {},
): SitePage => ({ ...options, ...pageWith(page, model as unknown as M) });

/** Returns a function that puts pages together that have members in common. */
export const sitePages =
  <Common extends object>(common: Common) =>
  <M extends LayoutModel>(
    page: Page<M>,
    more: NoInfer<Unfilled<M, Filled | keyof Common>>,
    options?: PageOptions,
  ): SitePage =>
    sitePage(page, { ...common, ...more } as unknown as Unfilled<M>, options);

export interface Site {
  url: string;
  /** The CA's certificate, PEM. */
  ca: string;
  /** Replaces the tenant for later requests. */
  setTenant(tenant: SiteTenant): void;
  /** Puts a page at a path. */
  show(path: string, page: SitePage | AuthError): void;
  /** Bodies of the forms that passed the CSRF check, the newest last. */
  posted: Record<string, unknown>[];
  stop(): Promise<void>;
}

/**
 * Starts the site. `POST /after` accepts a form and redirects to the address in its field `to`, if there is one. A
 * refused form is answered with the error page.
 */
export async function startSite(
  given: Readonly<Record<string, SitePage | AuthError>>,
  { views: viewsDirectory = VIEWS }: { views?: string } = {},
): Promise<Site> {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-site-'));
  const certificate = await localCertificate(directory, ['localhost'], systemClock);
  const pages = new Map(Object.entries(given));
  const posted: Site['posted'] = [];
  const app = new Koa();
  const server = https.createServer(certificate);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://localhost:${(server.address() as AddressInfo).port}`;
  let settings = settingsOf({});
  const views = createViews({
    directory: viewsDirectory,
    random: systemRandom,
    settings: () => settings,
    look: () => ({ texts: new Map(), template: undefined }),
    liquid: reportingLiquid(createTenantLiquid(), () => {}),
  });
  const csrf = createCsrf(url, systemRandom);

  app.use(securityHeaders({ hsts: false }));
  const assets = new Map(
    views.assets.routes.flatMap(({ methods, path, handle }) =>
      methods.map((method) => [`${method} ${path}`, handle]),
    ),
  );
  app.use((ctx, next) => {
    const handle = assets.get(`${ctx.method} ${ctx.path}`);
    return handle === undefined ? next() : handle(ctx, { admitted: undefined, body: undefined });
  });
  app.use(readBody(100_000));
  app.use(async (ctx) => {
    if (ctx.method === 'POST') return takeForm(ctx);
    const page = pages.get(ctx.path);
    ctx.state.requestId = 'req-1';
    if (page === undefined) return;
    if (page instanceof AuthError) return views.error(ctx, page);
    const { page: shown, model, ...options } = page;
    const filled: LayoutModel & Record<Filled, string> = {
      action: '/after',
      csrf: csrf.token(ctx),
      ...model,
    };
    await views.page(ctx, shown, filled, options);
  });
  const takeForm = async (ctx: Context): Promise<void> => {
    try {
      csrf.verify(ctx);
    } catch (thrown) {
      if (!(thrown instanceof AuthError)) throw thrown;
      return views.error(ctx, thrown);
    }
    const { body } = ctx.request as unknown as { body: Record<string, unknown> };
    posted.push(body);
    if (typeof body.to === 'string') ctx.redirect(body.to);
    else ctx.body = 'accepted';
  };
  server.on('request', app.callback());
  return {
    url,
    ca: await readFile(certificate.caFile, 'utf8'),
    setTenant: (tenant) => {
      settings = settingsOf(tenant);
    },
    show: (path, page) => pages.set(path, page),
    posted,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true });
    },
  };
}

function settingsOf({ tenant = {}, branding = {} }: SiteTenant) {
  return { tenant: tenantSettingsSchema.parse(tenant), branding: brandingSchema.parse(branding) };
}
