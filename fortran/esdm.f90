! SPDX-License-Identifier: LGPL-3.0-or-later
!
! Module esdm: containers, queries, accuracy and commits from Fortran 2018, over the C API.
!
!     gfortran -c esdm.f90 && gfortran model.f90 esdm.o $(pkg-config --libs esdm)
!
! Models that write through nf90_* need none of this: esdm-run takes them to ESDM as they are. This module is
! for programs that ask the catalogue, state accuracy, or commit at times of their own choice.
!
! Conventions: arrays and dimensions are in Fortran's order, as in netCDF-Fortran: the first dimension varies
! fastest. `start` counts from 1. Every procedure that can fail has the optional arguments `stat` (ESDM_OK, or
! what esdm/status.h says) and `errmsg`; without `stat` a failure ends the program with ESDM's message.
! Datasets are named by their paths, "tas" or "ocean/tos". Threads: as the C functions of the same name.
module esdm
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  implicit none
  private

  integer, parameter, public :: ESDM_OK = 0, ESDM_EINVAL = 1, ESDM_ENOENT = 2, ESDM_EEXIST = 3, &
       ESDM_ECONFLICT = 4, ESDM_ENOTSUP = 5, ESDM_ENOMEM = 6, ESDM_ENOSPC = 7, ESDM_EACCES = 8, ESDM_EIO = 9, &
       ESDM_ETIMEDOUT = 10, ESDM_ECORRUPT = 11, ESDM_ECANCELED = 12
  ! Types of elements.
  integer(c_int32_t), parameter, public :: ESDM_INT8 = 1, ESDM_CHAR = 2, ESDM_INT16 = 3, ESDM_INT32 = 4, &
       ESDM_REAL32 = 5, ESDM_REAL64 = 6, ESDM_INT64 = 10
  ! Length of an unlimited dimension.
  integer(int64), parameter, public :: ESDM_UNLIMITED = -1_int64

  integer, parameter :: MAX_RANK = 32, MESSAGE = 500

  ! Handles. Copies of one stand for the same thing.
  type, public :: esdm_session
    private
    type(c_ptr) :: c = c_null_ptr
  end type
  type, public :: esdm_container
    private
    type(c_ptr) :: c = c_null_ptr
  end type
  type, public :: esdm_dimension
    private
    type(c_ptr) :: c = c_null_ptr
  end type
  type, public :: esdm_dataset
    private
    type(c_ptr) :: c = c_null_ptr
  end type

  ! What a query found: a container, or a dataset of it ("/ocean/tos"; empty: the container itself).
  type, public :: esdm_match
    character(:), allocatable :: container, dataset
  end type

  public :: esdm_session_open, esdm_session_close, esdm_find, esdm_list
  public :: esdm_container_create, esdm_container_open, esdm_container_commit, esdm_container_close, &
       esdm_container_discard, esdm_container_snapshot
  public :: esdm_dimension_create, esdm_dataset_create, esdm_dataset_find, esdm_dataset_shape
  public :: esdm_accuracy_state, esdm_accuracy_stated
  public :: esdm_attribute_set, esdm_attribute_get, esdm_write, esdm_read

  type, bind(c) :: c_error
    integer(c_int) :: status = 0, os_errno = 0
    character(kind=c_char) :: message(MESSAGE) = c_null_char
  end type
  type, bind(c) :: c_options
    type(c_ptr) :: config_path = c_null_ptr, config_json = c_null_ptr
    logical(c_bool) :: read_only = .false._c_bool
  end type
  type, bind(c) :: c_match
    type(c_ptr) :: container, dataset
  end type
  type, bind(c) :: c_info ! the beginning of esdm_container_info
    type(c_ptr) :: name
  end type
  type, bind(c) :: c_attribute
    type(c_ptr) :: name
    integer(c_int32_t) :: kind
    integer(c_int64_t) :: count
    type(c_ptr) :: values
  end type
  type, bind(c) :: c_space
    integer(c_int32_t) :: rank
    logical(c_bool) :: has_stride, has_memory_stride
    integer(c_int64_t) :: offset(MAX_RANK), extent(MAX_RANK), stride(MAX_RANK), memory_stride(MAX_RANK)
  end type
  type, bind(c) :: c_accuracy ! has room for esdm_accuracy, which no one looks into here
    real(c_double) :: room(1024)
  end type

  ! Matches while they are found.
  type :: found
    type(esdm_match), allocatable :: list(:)
    integer :: count = 0
  end type

  include "esdm_c.inc"

  ! Sets an attribute: esdm_attribute_set(container_or_dataset, name, value [, stat, errmsg]); a text, or numbers
  ! of kind int32, int64, real32, real64, one or several. One of the name is replaced.
  interface esdm_attribute_set
    module procedure set_container_value, set_dataset_value, set_container_values, set_dataset_values
  end interface
  ! Reads one: esdm_attribute_get(container_or_dataset, name, value [, stat, errmsg]); a text into an allocatable
  ! character, numbers into an allocatable array of real64. ESDM_ENOENT: there is none.
  interface esdm_attribute_get
    module procedure get_container_text, get_dataset_text, get_container_values, get_dataset_values
  end interface
  ! esdm_write(dataset, values [, start, stat, errmsg]): the array `values`, of any rank that the dataset has and
  ! of kind int8, int16, int32, int64, real32 or real64, goes to where `start` says. Unlimited dimensions grow.
  interface esdm_write
    module procedure write_int8, write_int16, write_int32, write_int64, write_real32, write_real64
  end interface
  ! esdm_read(dataset, values [, start, stat, errmsg]): as many values as the array has.
  interface esdm_read
    module procedure read_int8, read_int16, read_int32, read_int64, read_real32, read_real64
  end interface

contains

  ! ---- texts and failures ---------------------------------------------------------------------

  function to_c(text) result(chars)
    character(*), intent(in) :: text
    character(kind=c_char), allocatable :: chars(:)
    integer :: i, n
    n = len_trim(text)
    allocate (chars(n + 1))
    do i = 1, n
      chars(i) = text(i:i)
    end do
    chars(n + 1) = c_null_char
  end function

  function characters(memory, n) result(text)
    type(c_ptr), intent(in) :: memory
    integer(c_int64_t), intent(in) :: n
    character(:), allocatable :: text
    character(kind=c_char), pointer :: chars(:)
    integer(c_int64_t) :: i
    allocate (character(n) :: text)
    if (n == 0) return
    call c_f_pointer(memory, chars, [n])
    do i = 1, n
      text(i:i) = chars(i)
    end do
  end function

  function from_c(memory) result(text)
    type(c_ptr), intent(in) :: memory
    character(:), allocatable :: text
    if (c_associated(memory)) then
      text = characters(memory, int(c_strlen(memory), c_int64_t))
    else
      text = ""
    end if
  end function

  ! Hands a status on, or ends the program.
  subroutine tell(status, err, stat, errmsg)
    integer(c_int), intent(in) :: status
    type(c_error), intent(in), target :: err
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: text
    if (present(stat)) stat = int(status)
    if (status == ESDM_OK) return
    text = from_c(c_loc(err%message))
    if (present(errmsg)) errmsg = text
    if (.not. present(stat)) error stop "esdm: " // text
  end subroutine

  subroutine fail(status, text, stat, errmsg)
    integer, intent(in) :: status
    character(*), intent(in) :: text
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_error) :: err
    integer :: i
    do i = 1, min(len(text), MESSAGE - 1)
      err%message(i) = text(i:i)
    end do
    call tell(int(status, c_int), err, stat, errmsg)
  end subroutine

  ! ---- sessions and queries -------------------------------------------------------------------

  ! Opens the site. config: path of its configuration; without it ESDM looks for one as all programs do.
  subroutine esdm_session_open(session, config, read_only, stat, errmsg)
    type(esdm_session), intent(out) :: session
    character(*), intent(in), optional :: config
    logical, intent(in), optional :: read_only
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: path(:)
    type(c_options) :: options
    type(c_error) :: err
    if (present(config)) then
      path = to_c(config)
      options%config_path = c_loc(path)
    end if
    if (present(read_only)) options%read_only = logical(read_only, c_bool)
    call tell(c_session_open(options, session%c, err), err, stat, errmsg)
  end subroutine

  ! All containers must be closed before.
  subroutine esdm_session_close(session)
    type(esdm_session), intent(inout) :: session
    call c_session_close(session%c)
    session%c = c_null_ptr
  end subroutine

  subroutine add(all, container, dataset)
    type(found), intent(inout) :: all
    character(*), intent(in) :: container, dataset
    type(esdm_match), allocatable :: more(:)
    if (all%count == size(all%list)) then
      allocate (more(max(16, 2 * all%count)))
      more(:all%count) = all%list
      call move_alloc(more, all%list)
    end if
    all%count = all%count + 1
    all%list(all%count)%container = container
    all%list(all%count)%dataset = dataset
  end subroutine

  logical(c_bool) function visit_match(match, user) bind(c)
    type(c_match), intent(in) :: match
    type(c_ptr), value :: user
    type(found), pointer :: all
    call c_f_pointer(user, all)
    call add(all, from_c(match%container), from_c(match%dataset))
    visit_match = .true._c_bool
  end function

  logical(c_bool) function visit_container(info, user) bind(c)
    type(c_info), intent(in) :: info
    type(c_ptr), value :: user
    type(found), pointer :: all
    call c_f_pointer(user, all)
    call add(all, from_c(info%name), "")
    visit_container = .true._c_bool
  end function

  ! What meets an expression, as esdm-find has it: 'standard_name = air_temperature and frequency = mon'.
  subroutine esdm_find(session, expression, matches, stat, errmsg)
    type(esdm_session), intent(in) :: session
    character(*), intent(in) :: expression
    type(esdm_match), allocatable, intent(out) :: matches(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(found), target :: all
    type(c_error) :: err
    integer(c_int) :: status
    allocate (all%list(0))
    status = c_find(session%c, to_c(expression), c_funloc(visit_match), c_loc(all), err)
    matches = all%list(:all%count)
    call tell(status, err, stat, errmsg)
  end subroutine

  ! Containers by their names: all, or those of a name and below it.
  subroutine esdm_list(session, matches, prefix, stat, errmsg)
    type(esdm_session), intent(in) :: session
    type(esdm_match), allocatable, intent(out) :: matches(:)
    character(*), intent(in), optional :: prefix
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: said(:)
    type(found), target :: all
    type(c_error) :: err
    type(c_ptr) :: from
    integer(c_int) :: status
    from = c_null_ptr
    if (present(prefix)) then
      said = to_c(prefix)
      from = c_loc(said)
    end if
    allocate (all%list(0))
    status = c_list(session%c, from, c_funloc(visit_container), c_loc(all), err)
    matches = all%list(:all%count)
    call tell(status, err, stat, errmsg)
  end subroutine

  ! ---- containers -----------------------------------------------------------------------------

  ! A new one, which nobody else sees before its first commit. replace: one of the name is replaced then.
  subroutine esdm_container_create(session, name, container, replace, stat, errmsg)
    type(esdm_session), intent(in) :: session
    character(*), intent(in) :: name
    type(esdm_container), intent(out) :: container
    logical, intent(in), optional :: replace
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_error) :: err
    integer(c_int) :: mode
    mode = 0
    if (present(replace)) mode = merge(1_c_int, 0_c_int, replace)
    call tell(c_create(session%c, to_c(name), mode, container%c, err), err, stat, errmsg)
  end subroutine

  ! name: also "run.nc@7", "run.nc@-1", "run.nc@2026-11-20", for reading. write: to change it.
  subroutine esdm_container_open(session, name, container, write, stat, errmsg)
    type(esdm_session), intent(in) :: session
    character(*), intent(in) :: name
    type(esdm_container), intent(out) :: container
    logical, intent(in), optional :: write
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_error) :: err
    integer(c_int) :: mode
    mode = 0
    if (present(write)) mode = merge(1_c_int, 0_c_int, write)
    call tell(c_open(session%c, to_c(name), mode, 0_c_int64_t, container%c, err), err, stat, errmsg)
  end subroutine

  ! Publishes all that was written and defined since the last commit, whole or not at all.
  subroutine esdm_container_commit(container, message, stat, errmsg)
    type(esdm_container), intent(in) :: container
    character(*), intent(in), optional :: message
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: said(:)
    type(c_error) :: err
    type(c_ptr) :: text
    text = c_null_ptr
    if (present(message)) then
      said = to_c(message)
      text = c_loc(said)
    end if
    call tell(c_commit(container%c, text, err), err, stat, errmsg)
  end subroutine

  ! Commits, and frees the handle in every case.
  subroutine esdm_container_close(container, stat, errmsg)
    type(esdm_container), intent(inout) :: container
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_error) :: err
    integer(c_int) :: status
    status = c_close(container%c, err)
    container%c = c_null_ptr
    call tell(status, err, stat, errmsg)
  end subroutine

  ! Frees the handle, and drops what was not committed.
  subroutine esdm_container_discard(container)
    type(esdm_container), intent(inout) :: container
    call c_discard(container%c)
    container%c = c_null_ptr
  end subroutine

  ! Number of the snapshot; 0 before the first commit.
  integer(int64) function esdm_container_snapshot(container)
    type(esdm_container), intent(in) :: container
    esdm_container_snapshot = c_snapshot(container%c)
  end function

  ! ---- structure ------------------------------------------------------------------------------

  ! In the root group. length: ESDM_UNLIMITED for one that grows.
  subroutine esdm_dimension_create(container, name, length, dimension, stat, errmsg)
    type(esdm_container), intent(in) :: container
    character(*), intent(in) :: name
    integer(int64), intent(in) :: length
    type(esdm_dimension), intent(out) :: dimension
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_error) :: err
    if (length < -1) then
      call fail(ESDM_EINVAL, "the length of dimension '" // trim(name) // "' is negative", stat, errmsg)
      return
    end if
    call tell(c_dimension_create(c_root(container%c), to_c(name), length, dimension%c, err), err, stat, errmsg)
  end subroutine

  ! dimensions: the one that varies fastest first; none for a scalar.
  subroutine esdm_dataset_create(container, name, kind, dimensions, dataset, stat, errmsg)
    type(esdm_container), intent(in) :: container
    character(*), intent(in) :: name
    integer(c_int32_t), intent(in) :: kind
    type(esdm_dimension), intent(in) :: dimensions(:)
    type(esdm_dataset), intent(out) :: dataset
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr), allocatable :: slowest_first(:)
    type(c_error) :: err
    integer :: i
    allocate (slowest_first(max(size(dimensions), 1)))
    do i = 1, size(dimensions)
      slowest_first(i) = dimensions(size(dimensions) + 1 - i)%c
    end do
    call tell(c_dataset_create(c_root(container%c), to_c(name), kind, int(size(dimensions), c_int32_t), &
         slowest_first, dataset%c, err), err, stat, errmsg)
  end subroutine

  subroutine esdm_dataset_find(container, path, dataset, stat, errmsg)
    type(esdm_container), intent(in) :: container
    character(*), intent(in) :: path
    type(esdm_dataset), intent(out) :: dataset
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: rest
    type(c_ptr) :: group
    integer :: slash
    rest = trim(path)
    if (index(rest, "/") == 1) rest = rest(2:)
    group = c_root(container%c)
    slash = index(rest, "/")
    do while (slash > 0 .and. c_associated(group))
      group = c_group_find(group, to_c(rest(:slash - 1)))
      rest = rest(slash + 1:)
      slash = index(rest, "/")
    end do
    if (c_associated(group)) dataset%c = c_dataset_find(group, to_c(rest))
    if (c_associated(dataset%c)) then
      if (present(stat)) stat = ESDM_OK
    else
      call fail(ESDM_ENOENT, "there is no dataset '" // trim(path) // "'", stat, errmsg)
    end if
  end subroutine

  ! Lengths of its dimensions now, the one that varies fastest first.
  function esdm_dataset_shape(dataset) result(lengths)
    type(esdm_dataset), intent(in) :: dataset
    integer(int64), allocatable :: lengths(:)
    integer :: i, n
    n = int(c_rank(dataset%c))
    allocate (lengths(n))
    do i = 1, n
      lengths(i) = c_length(c_dataset_dimension(dataset%c, int(n - i, c_int32_t)))
    end do
  end function

  ! ---- accuracy -------------------------------------------------------------------------------

  ! States what must be kept of what is written from now on: "abs=0.01 K; mode=archive". What is stated is
  ! verified for every fragment. An empty text takes it back.
  subroutine esdm_accuracy_state(dataset, text, stat, errmsg)
    type(esdm_dataset), intent(in) :: dataset
    character(*), intent(in) :: text
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: units
    character(kind=c_char), allocatable, target :: units_c(:)
    type(c_accuracy) :: accuracy
    type(c_error) :: err
    type(c_ptr) :: its_units
    integer(c_int) :: status
    integer :: none
    call get_text(c_dataset_attributes(dataset%c), "units", units, none)
    its_units = c_null_ptr
    if (none == ESDM_OK) then
      units_c = to_c(units)
      its_units = c_loc(units_c)
    end if
    call c_accuracy_init(accuracy)
    status = ESDM_OK
    if (len_trim(text) > 0) status = c_accuracy_parse(accuracy, to_c(text), its_units, err)
    if (status == ESDM_OK) status = c_set_accuracy(dataset%c, accuracy, err)
    call tell(status, err, stat, errmsg)
  end subroutine

  ! What is stated, as esdm_accuracy_state() takes it; empty: nothing.
  function esdm_accuracy_stated(dataset) result(text)
    type(esdm_dataset), intent(in) :: dataset
    character(:), allocatable :: text
    type(c_accuracy) :: accuracy
    type(c_error) :: err
    type(c_ptr) :: printed
    text = ""
    if (.not. c_get_accuracy(dataset%c, accuracy)) return
    call tell(c_accuracy_print(accuracy, printed, err), err)
    text = from_c(printed)
    call c_free(printed)
  end function

  include "esdm_attributes.inc"
  include "esdm_data.inc"
end module esdm
