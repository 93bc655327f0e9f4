// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What other headers of a user may define before ours come: the macros of some headers of C, and
/// words that those of X11 (X.h, Xlib.h) define. Kokkos and MPI do not compile after them, so they
/// come first.

#if __has_include(<Kokkos_Core.hpp>)
#include <Kokkos_Core.hpp>
#include <mpi.h>
#endif
#if defined(HEDDLE_HAS_CBLAS)
#include <cblas.h>
#endif

#include <complex.h>
#include <sys/param.h>
#include <sys/sysmacros.h>
#include <termios.h>

#if !defined(MAX) || !defined(minor) || !defined(ECHO)
#error "these headers were to define macros"
#endif
#if !defined(__STRICT_ANSI__) && !defined(I)
#error "<complex.h> was to define I"
#endif

#define Above 0
#define AllTemporary 0L
#define Always 2
#define AnyKey 0L
#define ArcChord 0
#define BadAccess 10
#define BadAlloc 11
#define BadLength 16
#define BadMatch 8
#define BadName 15
#define BadRequest 1
#define BadValue 2
#define Below 1
#define Bool int
#define Button1 1
#define ButtonPress 4
#define CapButt 1
#define ClientMessage 33
#define Complex 0
#define ControlMask (1 << 2)
#define Convex 2
#define CopyFromParent 0L
#define CurrentTime 0L
#define DestroyAll 0
#define DirectColor 5
#define DisableAccess 0
#define EnableAccess 1
#define EnterNotify 7
#define Expose 12
#define False 0
#define FillSolid 0
#define FocusIn 9
#define FocusOut 10
#define GenericEvent 35
#define GrabModeSync 0
#define GrayScale 1
#define InputFocus 1L
#define InputOnly 2
#define InputOutput 1
#define JoinRound 1
#define KeyPress 2
#define KeyRelease 3
#define LineSolid 0
#define LockMask (1 << 1)
#define LowerHighest 1
#define LSBFirst 0
#define MappingNotify 34
#define MotionNotify 6
#define MSBFirst 1
#define NoEventMask 0L
#define None 0L
#define Nonconvex 1
#define NoSymbol 0L
#define NotifyNormal 0
#define NotUseful 0
#define Opposite 4
#define ParentRelative 1L
#define PlaceOnTop 0
#define PointerRoot 1L
#define RaiseLowest 0
#define RevertToNone 0
#define ShiftMask (1 << 0)
#define StaticGray 0
#define Status int
#define Success 0
#define TopIf 2
#define True 1
#define TrueColor 4
#define Unsorted 0
#define WhenMapped 1
#define WindingRule 1
#define YSorted 1
