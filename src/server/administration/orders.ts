// The orders, by the name of their command.
import type { z } from 'zod';
import type { Settings } from '../../settings/index.ts';
import { account } from './account.ts';
import { action } from './action-test.ts';
import { admin, administrator } from './admin.ts';
import { inspectOrder } from './inspect.ts';
import { rotate } from './keys-order.ts';
import type { OrderDeclaration, OrderDependencies } from './order.ts';
import { script } from './script-test.ts';
import { apply, exportOrder, plan } from './tenant-orders.ts';

const ORDERS = {
  apply,
  plan,
  export: exportOrder,
  inspect: inspectOrder,
  rotate,
  script,
  action,
  account,
  admin,
  administrator,
};

type Orders = typeof ORDERS;
export type OrderName = keyof Orders;

/** A body without members has a type that excludes all. */
type Members<Body> = string extends keyof Body ? unknown : Body;

/** An order, as it is sent. */
export type Order<Name extends OrderName = OrderName> = {
  [One in Name]: { command: One } & Members<z.input<Orders[One]['body']>>;
}[Name];
export type OrderResult<Name extends OrderName> = Awaited<ReturnType<Orders[Name]['run']>>;

/** Carries out an order, at the server that has the store open or in this process. */
export type SendOrder = <Name extends OrderName>(
  settings: Settings,
  order: Order<Name>,
) => Promise<OrderResult<Name>>;

/** Carries out an order of this process. @throws TenantFault; Error with the reason */
export async function runOrder<Name extends OrderName>(
  deps: OrderDependencies,
  { command, ...body }: Order<Name>,
): Promise<OrderResult<Name>> {
  return (await declarationOf(command).run(deps, body)) as OrderResult<Name>;
}

/** Which of the declarations it is, is known to the types of the callers alone. */
const declarationOf = (command: OrderName) => ORDERS[command] as OrderDeclaration<z.ZodType, unknown>;

/** Returns the work of an order that was received; undefined for one that is not declared, or has another body. */
export function receivedOrder(received: unknown): ((deps: OrderDependencies) => unknown) | undefined {
  const { command, ...given } = Object(received) as Record<string, unknown>;
  if (typeof command !== 'string' || !Object.hasOwn(ORDERS, command)) return undefined;
  const { body, run } = declarationOf(command as OrderName);
  const parsed = body.safeParse(given);
  return parsed.success ? (deps) => run(deps, parsed.data) : undefined;
}
