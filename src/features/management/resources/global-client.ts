// The "global" client. At the hosted service, the tenant's customized login page is a member of it, and tools look
// for it there. Here the page is in the section `pages`, and this client is a view of it.
import { z } from 'zod';
import { clientSchema } from '../../../records/clients.ts';
import type { Client } from '../../../records/collections.ts';
import { pageSchema } from '../../../records/pages.ts';
import { type SectionDependencies, section } from '../section.ts';

/** No other client has this id: generated ones are 32 letters and digits. */
export const GLOBAL_CLIENT = 'gatehouse-all-applications';

const pages = z.array(pageSchema);

/** Returns the global client with the current login page. */
export async function globalClient(deps: SectionDependencies): Promise<Client> {
  const page = (await section('pages', pages).read(deps))?.find(({ name }) => name === 'login');
  return {
    ...clientSchema.parse({ client_id: GLOBAL_CLIENT, name: 'All Applications', grant_types: [] }),
    id: GLOBAL_CLIENT,
    global: true,
    ...(page === undefined
      ? { custom_login_page_on: false }
      : { custom_login_page: page.html, custom_login_page_on: page.enabled ?? true }),
  };
}

/** Changes the tenant's login page; nothing else of this client can be changed. */
export async function changeGlobalClient(
  deps: SectionDependencies,
  { custom_login_page: html, custom_login_page_on: enabled }: Readonly<Record<string, unknown>>,
): Promise<Client> {
  await section('pages', pages).change(deps, (current = []) => {
    const page = current.find(({ name }) => name === 'login');
    const changed = {
      ...page,
      name: 'login',
      ...(html === undefined ? {} : { html: html ?? '' }),
      ...(enabled === undefined ? {} : { enabled: enabled ?? true }),
    };
    return [...current.filter((one) => one !== page), changed];
  });
  return globalClient(deps);
}
