! SPDX-License-Identifier: LGPL-3.0-or-later
! Uses module esdm as a model would; stops with the number of the first check that fails.
program fortran_module
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use esdm
  implicit none
  type(esdm_session) :: session
  type(esdm_container) :: c
  type(esdm_dimension) :: x, y, t
  type(esdm_dataset) :: tas, mask, none
  type(esdm_match), allocatable :: matches(:)
  real(real32) :: field(4, 3), back(4, 3), all(4, 3, 2)
  real(real64), allocatable :: numbers(:)
  integer(int8) :: flags(4, 3), flags_back(4, 3)
  integer(int32) :: whole(4, 3)
  character(:), allocatable :: text
  character(200) :: message
  integer :: i, j, step, stat

  call esdm_session_open(session)
  call esdm_container_create(session, "model/run1.nc", c)
  call esdm_attribute_set(c, "title", "from Fortran")
  call esdm_attribute_set(c, "numbers", [1.5_real64, 2.5_real64])
  call esdm_dimension_create(c, "x", 4_int64, x)
  call esdm_dimension_create(c, "y", 3_int64, y)
  call esdm_dimension_create(c, "time", ESDM_UNLIMITED, t)
  call esdm_dataset_create(c, "tas", ESDM_REAL32, [x, y, t], tas)
  call esdm_dataset_create(c, "mask", ESDM_INT8, [x, y], mask)
  call esdm_attribute_set(tas, "units", "K")
  call esdm_attribute_set(tas, "level", 2_int32)
  call esdm_accuracy_state(tas, "abs=0.01 K")
  call check(1, esdm_accuracy_stated(tas) == "absolute_tolerance=0.01")
  flags = reshape([(int(i, int8), i = 1, 12)], [4, 3])
  call esdm_write(mask, flags)
  do step = 1, 2
    do j = 1, 3
      do i = 1, 4
        field(i, j) = real(273 + i + 10 * j + 100 * step)
      end do
    end do
    call esdm_write(tas, field, start=[1_int64, 1_int64, int(step, int64)], stat=stat, errmsg=message)
    call check(2, stat == ESDM_EINVAL .and. index(message, "3 dimensions") > 0)
    call esdm_write(tas, reshape(field, [4, 3, 1]), start=[1_int64, 1_int64, int(step, int64)])
    call esdm_container_commit(c, "a step")
    call check(3, esdm_container_snapshot(c) == step)
  end do
  call check(4, all_equal(esdm_dataset_shape(tas), [4_int64, 3_int64, 2_int64]))
  call esdm_container_close(c)

  call esdm_find(session, "units = K", matches)
  call check(5, size(matches) == 1)
  call check(6, matches(1)%container == "model/run1.nc" .and. matches(1)%dataset == "/tas")
  call esdm_list(session, matches, prefix="model")
  call check(7, size(matches) == 1 .and. matches(1)%dataset == "")
  call esdm_find(session, "units = ", matches, stat=stat, errmsg=message)
  call check(8, stat == ESDM_EINVAL .and. len_trim(message) > 0 .and. size(matches) == 0)

  call esdm_container_open(session, matches_name(session), c)
  call esdm_dataset_find(c, "/tas", tas)
  call esdm_read(tas, all)
  call check(9, maxval(abs(all(:, :, 2) - field)) <= 0.01)
  call esdm_read(tas, all(:, :, 1:1), start=[1_int64, 1_int64, 2_int64])
  call check(10, maxval(abs(all(:, :, 1) - field)) <= 0.01)
  call esdm_dataset_find(c, "mask", mask)
  call esdm_read(mask, flags_back)
  call check(11, all_int8(flags, flags_back))
  call esdm_read(mask, whole)
  call check(12, sum(whole) == 78)
  call esdm_attribute_get(tas, "units", text)
  call check(13, text == "K")
  call esdm_attribute_get(c, "numbers", numbers)
  call check(14, size(numbers) == 2 .and. abs(numbers(2) - 2.5) < 1e-12)
  call esdm_attribute_get(tas, "level", text, stat=stat, errmsg=message)
  call check(15, stat == ESDM_EINVAL .and. index(message, "no text") > 0)
  call esdm_attribute_get(tas, "nothing", numbers, stat=stat)
  call check(16, stat == ESDM_ENOENT .and. size(numbers) == 0)
  call esdm_dataset_find(c, "ocean/none", none, stat=stat, errmsg=message)
  call check(17, stat == ESDM_ENOENT .and. index(message, "ocean/none") > 0)
  call esdm_read(mask, back(:, :2), start=[1_int64, 3_int64], stat=stat)
  call check(18, stat == ESDM_EINVAL)
  call esdm_read(mask, back, start=[0_int64, 1_int64], stat=stat)
  call check(19, stat == ESDM_EINVAL)
  call esdm_write(mask, flags, stat=stat)
  call check(20, stat == ESDM_EACCES .or. stat == ESDM_EINVAL)
  call esdm_container_close(c)
  call esdm_container_open(session, "model/run1.nc@1", c)
  call esdm_dataset_find(c, "tas", tas)
  call check(21, all_equal(esdm_dataset_shape(tas), [4_int64, 3_int64, 1_int64]))
  call esdm_container_discard(c)
  call esdm_container_create(session, "model/run1.nc", c, stat=stat)
  call check(22, stat == ESDM_EEXIST)
  call esdm_session_close(session)
  call esdm_session_open(session, config="/none/site.json", stat=stat, errmsg=message)
  call check(23, stat == ESDM_ENOENT .and. index(message, "/none/site.json") > 0)
  print '("ok")'
  call esdm_session_open(session, config="/none/site.json") ! ends the program

contains

  subroutine check(number, good)
    integer, intent(in) :: number
    logical, intent(in) :: good
    if (.not. good) then
      print '("check ",i0," failed: ",a)', number, trim(message)
      stop 3
    end if
  end subroutine

  logical function all_equal(a, b)
    integer(int64), intent(in) :: a(:), b(:)
    all_equal = size(a) == size(b)
    if (all_equal) all_equal = sum(abs(a - b)) == 0
  end function

  logical function all_int8(a, b)
    integer(int8), intent(in) :: a(:, :), b(:, :)
    all_int8 = maxval(abs(int(a) - int(b))) == 0
  end function

  function matches_name(from) result(name)
    type(esdm_session), intent(in) :: from
    type(esdm_match), allocatable :: known(:)
    character(:), allocatable :: name
    call esdm_find(from, "title = 'from Fortran'", known)
    name = known(1)%container
  end function
end program
