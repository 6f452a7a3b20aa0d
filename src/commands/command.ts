// What a command declares. The file of a command is called as the first word of its name.
import type { Command } from 'commander';
import type { Logger } from 'pino';
import type { CommandProcess } from '../runtime/command-process.ts';
import type { SendOrder } from '../server/administration/orders.ts';

export interface CommandContext {
  host: CommandProcess;
  /** The log of the store, where this process opens it. Standard output is for the command's result. */
  log: Logger;
  sendOrder: SendOrder;
}

export interface CommandDeclaration {
  /** With its arguments, and after the word of its group if it is in one: `users import <file>`. */
  name: string;
  description: string;
  options?(command: Command): void;
  /** @param given the arguments, and then the options. */
  run(context: CommandContext, ...given: never[]): void | Promise<void>;
}
